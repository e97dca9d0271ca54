"""Examples in docstrings (`>>>`) as fenced blocks, so that their brackets are not read as links."""

import re

import griffe

EXAMPLE = re.compile(r"(?:^[ ]*>>>.*\n?)(?:^[ ]*\S.*\n?)*", re.MULTILINE)


def fence(text):
    """The text with each example in a fence; an example ends at an empty line, as in doctest."""

    def wrap(match):
        indent = re.match(r"[ ]*", match[0]).group()
        return f"{indent}```pycon\n{match[0].rstrip()}\n{indent}```\n"

    return EXAMPLE.sub(wrap, text)


class FenceDoctests(griffe.Extension):
    """Fences the examples of every docstring that is read."""

    def on_instance(self, *, obj, **kwargs):
        """Change the docstring of a module, class or function."""
        if obj.docstring is not None and ">>>" in obj.docstring.value:
            obj.docstring.value = fence(obj.docstring.value)
