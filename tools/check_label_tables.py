"""Check that docs/label-tables.md lists what the label tables hold, or write those parts of it.

    python tools/check_label_tables.py [--write]

The parts between `<!-- begin NAME -->` and `<!-- end NAME -->` come from the tables: every difference between the
published and the corrected senses with its reason, the labels that have only a hypernym, and labels that share a
synset. Exit 1 when the page is out of date.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from hardlook.similarity.label_sets import find_differences, list_label_sets, load_label_set

PAGE = Path(__file__).resolve().parents[1] / "docs" / "label-tables.md"


def list_sets() -> str:
    """A table of the sets."""
    lines = ["| set | labels | id | category_id | senses | differences |", "|---|---|---|---|---|---|"]
    for shipped in list_label_sets():
        both = "published" in shipped.variants
        own = (shipped.category_numbering or "-").removeprefix("category_id: ")
        count = str(len(find_differences(shipped.name))) if both else "-"
        senses = ", ".join(shipped.variants)
        lines.append(f"| `{shipped.name}` | {shipped.title} | {shipped.numbering} | {own} | {senses} | {count} |")
    return "\n".join(lines)


def list_differences() -> str:
    """A table a set: label, published, corrected, why."""
    parts = []
    for shipped in list_label_sets():
        if "published" not in shipped.variants:
            continue
        parts.append(f"### {shipped.name}\n\n| label | published | corrected | why |\n|---|---|---|---|")
        for one in find_differences(shipped.name):
            published = f"`{one.published}`" if one.published else "none"
            corrected = f"`{one.synset}`" if one.synset else f"under `{one.hypernym}`"
            parts.append(f"| {one.label} | {published} | {corrected} | {one.reason} |")
        parts.append("")
    return "\n".join(parts).rstrip()


def list_shared() -> str:
    """A table of synsets that stand for several labels of a set, in the corrected variant."""
    lines = ["| set | synset | labels |", "|---|---|---|"]
    for shipped in list_label_sets():
        for synset, names in load_label_set(shipped.name).shared_synsets().items():
            lines.append(f"| {shipped.name} | `{synset}` | {', '.join(names)} |")
    return "\n".join(lines)


def fill(page: str) -> str:
    """The page with its parts written anew."""
    for name, text in (("sets", list_sets()), ("differences", list_differences()), ("shared", list_shared())):
        pattern = re.compile(f"(<!-- begin {name} -->\n).*?(<!-- end {name} -->)", re.DOTALL)
        page, found = pattern.subn(lambda match, text=text: f"{match[1]}\n{text}\n\n{match[2]}", page)
        if found != 1:
            sys.exit(f"{PAGE.name} must have one part `{name}`, and has {found}")
    return page


def main() -> None:
    """Check or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the parts instead of checking them")
    write = parser.parse_args().write
    page = PAGE.read_text(encoding="utf-8")
    if write:
        PAGE.write_text(fill(page), encoding="utf-8")
    elif fill(page) != page:
        sys.exit(f"{PAGE.name} is out of date: run python tools/check_label_tables.py --write")


if __name__ == "__main__":
    main()
