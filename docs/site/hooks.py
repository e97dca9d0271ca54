"""What mkdocs does beyond its own: notebooks are executed and shown, commands are listed, files of the repository are
pages, and the notes beside fenced blocks (`needs=`, `skip=`, `file=`), which tests read, are not shown.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
PAGES = {"contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}
# Files of the repository that a page describes: the site shows them at its end.
SHOWN = {"clusters.md": {"deploy/slurm-array.sh": "bash", "deploy/rayjob.yaml": "yaml", "deploy/sky.yaml": "yaml"}}
FENCE = re.compile(r"^(```[a-z]+)[ \t][^\n`]*$", re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:|#|mailto:)([^)\s]+)\)")


def on_files(files, config):
    """Add pages that are not in docs/: files of the repository, commands, and executed notebooks."""
    sys.path.insert(0, str(Path(__file__).parent))
    from command_pages import write_command_reference
    from notebook_pages import convert_notebook

    made = {page: (ROOT / source).read_text(encoding="utf-8") for page, source in PAGES.items()}
    made["reference/commands.md"] = write_command_reference()
    for path, text in made.items():
        files.append(File.generated(config, path, content=text))
    for notebook in sorted((ROOT / "docs" / "tutorials").glob("*.ipynb")):
        page = f"tutorials/{notebook.stem}.md"
        existing = files.get_file_from_path(f"tutorials/{notebook.name}")
        if existing is not None:
            files.remove(existing)
        files.append(File.generated(config, page, content=convert_notebook(notebook)))
    return files


def on_config(config):
    """Notebooks in the navigation are pages."""
    config["nav"] = _replace_notebooks(config["nav"])
    return config


def _replace_notebooks(entry):
    if isinstance(entry, list):
        return [_replace_notebooks(one) for one in entry]
    if isinstance(entry, dict):
        return {name: _replace_notebooks(one) for name, one in entry.items()}
    return re.sub(r"\.ipynb$", ".md", entry)


def on_page_markdown(markdown, page, config, files):
    """Leave the notes beside fenced blocks out, and let links to files of the repository lead to their pages."""
    for path, language in SHOWN.get(page.file.src_uri, {}).items():
        markdown += f"\n## {path}\n\n```{language}\n{(ROOT / path).read_text(encoding='utf-8')}```\n"
    return LINK.sub(lambda match: f"]({_resolve(match[1], page.file.src_uri, files)})", FENCE.sub(r"\1", markdown))


def _resolve(target, page, files):
    """Where a link leads on the site, relative to its page."""
    path, hash_mark, anchor = target.partition("#")
    if not path:
        return target
    folder = page.rpartition("/")[0]
    in_docs = os.path.normpath(path if page in PAGES else f"docs/{folder}/{path}")
    sources = {source: name for name, source in PAGES.items()}
    if in_docs in sources:
        found = sources[in_docs]
    elif in_docs.startswith("docs/"):
        found = in_docs.removeprefix("docs/")
    elif in_docs in SHOWN.get(page, {}):
        return "#" + re.sub(r"[^a-z0-9-]", "", in_docs.lower())  # the heading of the file
    elif (ROOT / in_docs).exists():
        return _link_to_source(in_docs)
    else:
        return target
    found = re.sub(r"\.ipynb$", ".md", found)
    return os.path.relpath(found, folder or ".") + hash_mark + anchor


def _link_to_source(path):
    """A file of the repository that is not a page: its address where the repository is published, if that is known."""
    remote = os.environ.get("HARDLOOK_REPOSITORY_URL", "")
    if not remote:
        asked = ["git", "-C", str(ROOT), "config", "--get", "remote.origin.url"]
        remote = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()
    return f"{remote.removesuffix('.git')}/blob/main/{path}" if remote.startswith("https://") else "index.md"
