"""Notebooks as pages: executed from top to bottom in an empty folder, each output below its cell.

    python docs/site/notebook_pages.py docs/tutorials/bring-your-model.ipynb

prints the page. A cell that raises ends the build.
"""

import html
import json
import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 600  # of one cell


def find_interpreter(needed):
    """The Python that runs a notebook with these libraries, and its variables; None where no environment has them.

    Libraries that depend on torchvision are in an environment of their own, which `make docs` names.
    """
    if all(find_spec(name) for name in needed):
        return sys.executable, {}
    families = os.environ.get("HARDLOOK_FAMILIES_PYTHON", "")
    if not families or not Path(families).exists():
        return None
    # Its torchvision may be built for another torch: the tests' definitions of what is then missing.
    support = ROOT / "tests" / "support"
    paths = [str(support / "start_with_operators"), str(support), os.environ.get("PYTHONPATH", "")]
    return str(Path(families).absolute()), {"PYTHONPATH": os.pathsep.join(filter(None, paths))}


def execute_notebook(path):
    """The notebook with its outputs, run in an empty folder."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    found = find_interpreter(notebook.metadata.get("hardlook", {}).get("needs", []))
    if os.environ.get("HARDLOOK_DOCS_EXECUTE") == "0" or found is None:
        return notebook  # for a quick look at the other pages, or where a library is not installed: without outputs
    interpreter, variables = found
    notebook.metadata["kernelspec"] = {"name": "notebook", "display_name": "Python 3", "language": "python"}
    folder = Path(tempfile.mkdtemp(prefix="notebook-"))
    kernel = {
        "argv": [interpreter, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
        "display_name": "Python 3",
        "language": "python",
        "env": {**variables, "PATH": os.pathsep.join([str(Path(interpreter).parent), os.environ["PATH"]])},
    }
    place, before = folder / "jupyter", os.environ.get("JUPYTER_PATH")
    (place / "kernels" / "notebook").mkdir(parents=True)
    (place / "kernels" / "notebook" / "kernel.json").write_text(json.dumps(kernel))
    (folder / "empty").mkdir()
    os.environ["JUPYTER_PATH"] = str(place)
    try:
        resources = {"metadata": {"path": str(folder / "empty")}}
        NotebookClient(notebook, timeout=SECONDS, kernel_name="notebook", resources=resources).execute()
    finally:
        os.environ.pop("JUPYTER_PATH") if before is None else os.environ.update(JUPYTER_PATH=before)
        shutil.rmtree(folder, ignore_errors=True)
    return notebook


def convert_notebook(path):
    """The executed notebook as Markdown."""
    parts = []
    for cell in execute_notebook(path).cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        elif cell.cell_type == "code" and cell.source.strip():
            parts.append(f"```python\n{cell.source}\n```")
            parts += [shown for output in cell.outputs if (shown := _show(output))]
    return "\n\n".join(parts) + "\n"


def _show(output):
    """One output of a cell: HTML or a picture as it is, else its text."""
    data = output.get("data", {})
    if output.output_type == "stream":
        return _show_text(output.text) if output.name == "stdout" else ""
    if "text/html" in data:
        # One line per paragraph would be read as Markdown.
        inner = "".join(data["text/html"]).replace("\n\n", "\n")
        return f'<div class="cell-output" style="overflow-x:auto">\n{inner}\n</div>'
    if "image/png" in data:
        return f'<img src="data:image/png;base64,{data["image/png"].strip()}"/>'
    return _show_text("".join(data["text/plain"])) if "text/plain" in data else ""


def _show_text(text):
    return (
        f'<pre class="cell-output" style="white-space:pre-wrap">{html.escape(text.strip())}</pre>'
        if text.strip()
        else ""
    )


if __name__ == "__main__":
    print(convert_notebook(Path(sys.argv[1])))
