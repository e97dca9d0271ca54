"""Notebooks as pages: executed from top to bottom in an empty folder, each output below its cell.

    python docs/site/notebook_pages.py docs/tutorials/bring-your-model.ipynb

prints the page. A cell that raises ends the build.
"""

import html
import os
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

SECONDS = 600  # of one cell


def execute_notebook(path):
    """The notebook with its outputs, run in an empty folder by this Python."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    needed = notebook.metadata.get("hardlook", {}).get("needs", [])
    if os.environ.get("HARDLOOK_DOCS_EXECUTE") == "0" or any(find_spec(name) is None for name in needed):
        return notebook  # for a quick look at the other pages, or where a library is not installed: without outputs
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    folder = tempfile.mkdtemp(prefix="notebook-")
    # The kernel is the one of this environment, whichever is registered elsewhere.
    before = os.environ.get("JUPYTER_PATH"), os.environ.get("PATH")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    os.environ["JUPYTER_PATH"] = str(Path(sys.prefix) / "share" / "jupyter")
    try:
        place = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", resources=place).execute()
    finally:
        for name, value in zip(("JUPYTER_PATH", "PATH"), before, strict=True):
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})
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
        return f'<div class="cell-output">\n{inner}\n</div>'
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
