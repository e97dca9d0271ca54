"""`hardlook data contexts-from-voc`: VOC's images by main object and by the company it keeps."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from hardlook.commands.build import inputs
from hardlook.commands.printing import print_json
from hardlook.errors import OptionError


def contexts_from_voc(
    data: Annotated[Path, typer.Option("--data", help="A VOC devkit with class masks.")],
    out: Annotated[Path, typer.Option("--out", help="Folder for concept/context/image and manifest.csv.")],
    split: Annotated[str | None, typer.Option("--split", help="One list of the devkit; all lists without it.")] = None,
    smallest: Annotated[
        float, typer.Option("--smallest", min=0, max=1, help="Classes below this share of the image do not count.")
    ] = 0.0,
    files: Annotated[str, typer.Option("--files", help="copy, or link (symbolic links to the devkit).")] = "copy",
    as_json: inputs.Json = False,
    quiet: inputs.Quiet = False,
) -> None:
    """Concept: the class with most pixels. Context: the other class with most pixels, or `alone`.

    [bold]Example[/bold]

      hardlook data contexts-from-voc --data VOCdevkit --smallest .01 --files link --out voc-contexts
    """
    from hardlook.contexts.voc_contexts import company_rows, write_company

    if files not in ("copy", "link"):
        raise OptionError(f"--files {files}", remedy="copy or link")
    with inputs.showing_progress(quiet) as start:
        rows, of_no_class = company_rows(data, split=split, smallest=smallest, progress=start)
    written = write_company(rows, out, "link" if files == "link" else "copy")
    pairs = Counter((row.concept, row.context) for row in rows)
    document = {
        "schema": "hardlook.contexts-from-voc/1",
        "folder": str(out),
        "images": len(rows),
        "written": written,
        "concepts": len({row.concept for row in rows}),
        "contexts": len({row.context for row in rows}),
        "without_class": list(of_no_class),
        "pairs": [{"concept": a, "context": b, "images": n} for (a, b), n in sorted(pairs.items())],
    }
    if as_json:
        print_json(document)
        return
    lines = [
        f"{len(rows)} images of {document['concepts']} concepts in {document['contexts']} contexts, {written} new",
        *(f"  {a} with {b}: {n}" if b != "alone" else f"  {a} alone: {n}" for (a, b), n in pairs.most_common(8)),
    ]
    if of_no_class:
        lines.append(f"left out: {len(of_no_class)} images without a class")
    typer.echo("\n".join([*lines, f"folder: {out}"]))
