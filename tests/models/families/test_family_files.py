"""Each family is one file; what lies beside them is shared, or is the one part that a family keeps apart."""

from pathlib import Path

from hardlook.models import families

SHARED = {"__init__", "downloads", "hub_folders", "network_weights", "words"}
APART = {"hub_models": "transformers_models"}  # the opened folder, its tokenizer and image processor


def test_each_family_is_one_file():
    own = {module.rpartition(".")[2] for module in families.PREFIXES.values()}
    files = {path.stem for path in Path(families.__file__).parent.glob("*.py")}
    assert files == own | SHARED | set(APART)
    texts = {name: (Path(families.__file__).parent / f"{name}.py").read_text() for name in files}
    for part, owner in APART.items():
        assert {name for name, text in texts.items() if f"families.{part} import" in text} == {owner}
