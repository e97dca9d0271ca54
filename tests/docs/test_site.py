"""The site is complete: every page and notebook is in its navigation once, every public name in its reference."""

import importlib
import importlib.util
import json
import re
import shlex

import pytest
from doc_pages import ROOT, blocks_of
from parsed_commands import parse_command

DOCS = ROOT / "docs"
# Pages that docs/site/hooks.py makes.
MADE = {"contributing.md", "changelog.md", "reference/commands.md"}


def read_navigation():
    """The files of the navigation, in order."""
    text = (ROOT / "mkdocs.yml").read_text()
    return re.findall(r": ([\w/-]+\.(?:md|ipynb))$", text[text.index("\nnav:") :], re.MULTILINE)


def read_reference():
    """(module, name) of every name that the reference documents."""
    blocks = [
        (module, names)
        for page in sorted((DOCS / "reference").glob("*.md"))
        for module, names in re.findall(r"^::: ([\w.]+)\n.*?members: \[([^]]+)\]", page.read_text(), re.M | re.S)
    ]
    return [(module, name.strip()) for module, names in blocks for name in names.split(",")]


def test_every_page_and_notebook_is_in_the_navigation_once():
    files = read_navigation()
    there = {str(path.relative_to(DOCS)) for kind in ("*.md", "*.ipynb") for path in DOCS.rglob(kind)}
    assert sorted(files) == sorted(there | MADE)


def test_the_reference_has_every_public_name():
    import hardlook

    documented = read_reference()
    assert len(documented) == len(set(documented))
    objects = {name: [] for _, name in documented}
    for module, name in documented:
        objects[name].append(getattr(importlib.import_module(module), name))
    packages = {"hardlook": hardlook}
    for name in ("metrics", "torchmetrics"):
        if name == "metrics" or importlib.util.find_spec("torchmetrics"):
            packages[f"hardlook.{name}"] = importlib.import_module(f"hardlook.{name}")
    missing = []
    for package, module in packages.items():
        for name in set(module.__all__) - {"__version__", "metrics", "torchmetrics"}:
            value = getattr(module, name)
            if getattr(value, "__path__", None):  # a package that can be called: the function is documented
                place, _, called = value.__calls__.partition(":")
                value = getattr(importlib.import_module(place), called)
            if not any(one is value for one in objects.get(value.__name__, ())):
                missing.append(f"{package}.{name}")
    assert missing == []


@pytest.mark.parametrize("path", sorted((DOCS / "tutorials").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_is_stored_without_outputs_and_says_what_it_needs(path):
    """`make docs` executes all of them: docs/site/hooks.py takes every file of docs/tutorials."""
    notebook = json.loads(path.read_text())
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert code and all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert "".join(notebook["cells"][0]["source"]).startswith("# ")
    imported = set(re.findall(r"^(?:import|from) (\w+)", "\n".join("".join(c["source"]) for c in code), re.M))
    optional = {name for name in ("timm", "torchvision", "segmentation_models_pytorch") if name in imported}
    assert optional <= set(notebook["metadata"].get("hardlook", {}).get("needs", []))


def test_what_users_of_other_tools_are_pointed_to_exists():
    import hardlook
    from hardlook.cli.app import COMMANDS
    from hardlook.harness.registry import BUILT_IN

    lines = (DOCS / "other-tools.md").read_text().splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    tools = {row[1] for row in rows[1:]}
    assert {"easyfsl", "torchmetrics", "supervision", "FiftyOne", "Inspect", "lm-eval", "MTEB"} <= tools
    here = " ".join(row[-1] for row in rows[1:])
    learners = {one.name for one in hardlook.models(role="few-shot-learner")}
    assert set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", here)) <= learners
    for path in re.findall(r"`hl\.([\w.]+)", here):
        place = hardlook
        for name in path.split("."):
            if name == "torchmetrics" and not importlib.util.find_spec("torchmetrics"):
                break
            place = getattr(place, name)
    for verb, word in re.findall(r"`hardlook (\w+) ?([\w-]*)", here):
        assert verb in COMMANDS and (verb != "run" or word in {*BUILT_IN, "BENCHMARK"}), (verb, word)


def test_the_workflow_of_the_docs_is_one_of_github_and_its_commands_parse():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    [block] = [one for one in blocks_of(DOCS / "continuous-integration.md") if one.language == "yaml"]
    workflow = yaml.safe_load(block.text)
    assert set(workflow) == {"name", True, "jobs"} and workflow[True] == "pull_request"  # YAML 1.1 reads `on` as true
    [job] = workflow["jobs"].values()
    assert set(job) == {"runs-on", "steps"}
    commands = []
    for step in job["steps"]:
        assert set(step) <= {"uses", "with", "run", "if", "name"} and ("uses" in step) != ("run" in step)
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])
            assert all(isinstance(value, str) for value in step.get("with", {}).values())
        elif step["run"].startswith("hardlook "):
            commands.append(shlex.split(step["run"]))
    run, gate = commands
    given = parse_command(run)
    assert given["offline"] and str(given["out"]) == gate[2]
    judged = parse_command(gate)
    assert judged["max_drop"] == 0.01 and judged["metric"] == ["miou"]
    # What is kept is what the commands write.
    [kept] = [step["with"]["path"].split() for step in job["steps"] if "upload" in step.get("uses", "")]
    assert {str(judged["junit"]), str(judged["out"])} <= set(kept)


def test_exit_codes_of_the_docs_are_those_of_the_commands():
    from hardlook.cli import calibrate, compare, run

    rows = dict(re.findall(r"^\| (\d) \| (.*) \|$", (DOCS / "running.md").read_text(), re.M))
    codes = {run.FINISHED_WITH_FAILURES: "failed", calibrate.CALIBRATION_FAILED: "calibrate", compare.WORSE: "gate"}
    assert sorted(rows) == sorted(map(str, {0, 1, 2, *codes}))
    assert all(word in rows[str(code)] for code, word in codes.items())


def test_ci_builds_the_site():
    assert re.search(r"^ *\{? ?make lint && make docs", (ROOT / ".ci" / "run").read_text(), re.M)
    assert "mkdocs build --strict" in (ROOT / "Makefile").read_text()
