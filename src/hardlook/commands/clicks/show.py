"""`hardlook clicks show`: the heat map of a click model, its groups and clicks drawn from it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from hardlook.commands import study_flags
from hardlook.commands.printing import print_json
from hardlook.errors import OptionError
from hardlook.export.plain_values import json_text

_RULES = ("threshold", "exact")
_KINDS = ("auto", "fn", "fp")


def show(
    out: Annotated[Path, typer.Option("--out", help="Folder for page.html and the pictures as PNG.")],
    image: Annotated[
        Path | None, typer.Argument(help="An image; without it a scene of the planted world.", show_default=False)
    ] = None,
    mask: Annotated[Path | None, typer.Argument(help="The object's mask.", show_default=False)] = None,
    model: Annotated[str, typer.Option("--model", "--models", help="Click models, with commas.")] = "distance",
    model_arg: Annotated[
        list[str] | None, typer.Option("--model-arg", help="KEY=VALUE for all, NAME.KEY=VALUE for one; repeatable.")
    ] = None,
    number: Annotated[
        int | None, typer.Option("--object", min=1, help="Which integer of the mask is the object.")
    ] = None,
    previous: Annotated[
        Path | None, typer.Option("--previous", help="A mask whose error is to be clicked, instead of the object.")
    ] = None,
    error: Annotated[
        str, typer.Option("--error", help="fn (missing), fp (too much), or auto: the one that is corrected first.")
    ] = "auto",
    groups: Annotated[int, typer.Option("--groups", min=2, max=100, help="Clicking groups.")] = 10,
    group_rule: Annotated[str, typer.Option("--group-rule", help="threshold (as published) or exact.")] = "threshold",
    samples: Annotated[int, typer.Option("--samples", min=1, help="Clicks to draw.")] = 50,
    seed: study_flags.Seed = 0,
    as_json: study_flags.Json = False,
) -> None:
    """Draw where click models say that people click: heat maps, clicking groups in ordered colours, samples.

    [bold]Examples[/bold]

      hardlook clicks show photo.jpg mask.png --model distance,uniform --out shown

      hardlook clicks show photo.jpg mask.png --previous prediction.png --model saliency --out shown

      hardlook clicks show --model distance,planted-users --out shown
    """
    from hardlook.commands.clicks.evaluate import named_click_models
    from hardlook.commands.clicks.shown_region import planted_region, region_of_files

    if (image is None) != (mask is None):
        raise OptionError("an image without a mask", remedy="give IMAGE MASK, or neither for a planted scene")
    for flag, value, known in (("--group-rule", group_rule, _RULES), ("--error", error, _KINDS)):
        if value not in known:
            raise OptionError(f"{flag} {value}: there is no such choice", remedy=f"choose one of {', '.join(known)}")
    if error != "auto" and previous is None:
        raise OptionError(
            f"--error {error} without --previous: an object alone has no error",
            remedy="give IMAGE MASK --previous MASK, or leave --error out",
        )
    named = named_click_models(model, model_arg)
    if image is None or mask is None:
        if previous or number:
            raise OptionError("--previous and --object are for an image of yours", remedy="give IMAGE MASK")
        region = planted_region(seed)
    else:
        region = region_of_files(image, mask, number=number, previous=previous, kind=error)  # type: ignore[arg-type]
    given = {
        "image": str(image) if image else None,
        "mask": str(mask) if mask else None,
        "object": number,
        "previous": str(previous) if previous else None,
        "click_type": region.click_type,
        "groups": groups,
        "group_rule": group_rule,
        "samples": samples,
        "seed": seed,
    }
    document = write_shown(region, named, out, given)
    if as_json:
        print_json(document)
    else:
        typer.echo(f"pictures: {', '.join(document['files'])}\npage: {out / 'page.html'}")


def write_shown(region: Any, named: Any, out: Path, given: dict[str, Any]) -> dict[str, Any]:
    """Write the pictures and the page; return what was drawn."""
    from dataclasses import asdict

    import hardlook
    from hardlook.commands.clicks import show_page
    from hardlook.report.page import render_study
    from hardlook.runs.folder import write_whole

    shown = [
        show_page.show_model(
            name,
            chances,
            region,
            groups=given["groups"],
            rule=given["group_rule"],
            samples=given["samples"],
            seed=given["seed"],
        )
        for name, chances in show_page.distributions(region, named).items()
    ]
    files = {name: picture for one in shown for name, picture in show_page.full_pictures(region, one).items()}
    document = {
        "schema": "hardlook.clicks-shown/1",
        "hardlook": hardlook.__version__,
        **given,
        "pixels": int(region.error.sum()),
        "models": [
            {
                "model": one.name,
                "identity": named[one.name].facts(),
                "groups": [asdict(part) for part in one.parts],
                "samples": one.drawn.tolist(),
            }
            for one in shown
        ],
        "files": list(files),
    }
    page = render_study(
        show_page.show_sections(region, shown, given["group_rule"], named),
        title=f"Where {region.name} is clicked",
        summary="Click models on one region: their maps, their clicking groups, and clicks drawn from them.",
        provenance={"schema": document["schema"], "hardlook": document["hardlook"], **given},
        pictures=show_page.show_pictures(region, shown),
    )
    for name, picture in files.items():
        write_whole(out / name, _png(picture))
    write_whole(out / "shown.json", json_text(document))
    write_whole(out / "page.html", page)
    return document


def _png(picture: Any) -> bytes:
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(picture).save(buffer, format="PNG")
    return buffer.getvalue()
