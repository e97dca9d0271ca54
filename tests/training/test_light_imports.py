"""The training ground needs torch, numpy, safetensors and Fabric, and no other library."""

import subprocess
import sys

SCRIPT = """
import sys

class Refuse:
    blocked = {"polars", "pydantic", "typer", "rich", "jinja2", "PIL", "cv2", "scipy", "numba", "xxhash", "hotcoco",
               "cachetools", "cloudpickle", "threadpoolctl", "torchmetrics"}
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self.blocked:
            raise ModuleNotFoundError(f"blocked: {name}", name=name)

sys.meta_path.insert(0, Refuse())
sys.path[:0] = sys.argv[1:2]
import tempfile
from pathlib import Path
import torch
torch.set_num_threads(1)
from hardlook.networks.few_shot.catalogue import list_methods
for entry in list_methods():
    entry.load()
from tiny_few_shot import make_recipe, train_tiny
with tempfile.TemporaryDirectory() as folder:
    print(train_tiny(Path(folder), make_recipe(epochs=1)).card["finished"])
"""


def test_it_trains_without_other_libraries(request):
    support = request.config.rootpath / "tests" / "support"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(support)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout.strip().endswith("True"), done.stderr
