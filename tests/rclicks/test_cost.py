"""What models cost: times by a clock that the model itself moves, memory that it takes, the published counts of SAM."""

import json
import statistics
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from hardlook.errors import OptionError
from hardlook.models.roles import Prompted
from hardlook.rclicks import cost as module
from hardlook.rclicks.cost import count_flops, count_parameters, find_networks, measure_cost
from hardlook.rclicks.published import published_numbers
from hardlook.rclicks.time_to_mask import read_click_times


class Timed:
    """Opening takes 3 s for the first image, then 4, 5...; a click takes a tenth of a second per click so far."""

    def __init__(self):
        self.now, self.opened, self.prompts = 0.0, 0, []

    def open(self, image):
        self.now += 3.0 + self.opened
        self.opened += 1
        return SimpleNamespace(predict=lambda prompts: [self.answer(image, prompt) for prompt in prompts])

    def answer(self, image, prompt):
        self.prompts.append(prompt)
        self.now += 0.1 * len(prompt.points)
        return Prompted(np.zeros(image.shape[:2], bool), state=len(self.prompts))


def test_times_are_those_of_the_images_after_the_first(monkeypatch):
    model = Timed()
    monkeypatch.setattr(module.time, "perf_counter", lambda: model.now)
    cost = measure_cost(model, "promptable-segmenter", size=(40, 30), images=2, clicks=3)
    assert (cost.opening.mean, cost.opening.std) == pytest.approx((4500, 1000 * statistics.stdev([4, 5])))
    assert (cost.click.mean, cost.click.count) == (pytest.approx(200), 6)
    assert cost.first_mask.mean == pytest.approx(4600)
    assert (cost.parameters, cost.opening_flops, cost.click_flops) == (None, None, None)


def test_prompts_grow_click_by_click_and_give_the_state_back():
    model = Timed()
    measure_cost(model, "promptable-segmenter", size=(40, 30), images=1, clicks=3)
    assert [len(prompt.points) for prompt in model.prompts] == [1, 2, 3] * 2
    assert [prompt.state for prompt in model.prompts] == [None, 1, 2, None, 4, 5]
    last = model.prompts[-1]
    assert last.positive.tolist() == [True, False, True]
    assert (last.points >= 0).all() and (last.points < (40, 30)).all()


HUNGRY = """
from types import SimpleNamespace
import numpy as np
from hardlook.models.roles import Prompted
from hardlook.rclicks.cost import measure_cost

class Model:
    def __init__(self, numbers):
        self.numbers = numbers

    def open(self, image):
        return SimpleNamespace(predict=lambda prompts: [self.answer(image) for _ in prompts])

    def answer(self, image):
        np.ones(self.numbers)
        return Prompted(np.zeros(image.shape[:2], bool), state=None)

for numbers in (1, 25_000_000, 1):  # 200 MB, for a moment
    print(measure_cost(Model(numbers), "promptable-segmenter", size=(40, 30), images=1, clicks=1).peak_memory)
"""


def test_peak_memory_is_what_the_model_takes_while_it_runs():
    """In a process of its own: one that has run other tests may hold free memory, which the model would take first."""
    printed = subprocess.run([sys.executable, "-c", HUNGRY], capture_output=True, text=True, check=True).stdout
    small, large, again = map(int, printed.split())
    assert large - small == pytest.approx(200e6, rel=0.1)
    assert large - again > 150e6


def test_sam_has_the_published_parameters_and_nearly_the_published_flops():
    """The network of Table 5, without weights; torch counts products of attention that the paper's counter does not."""
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    layers = {"hidden_size": 1280, "num_hidden_layers": 32, "num_attention_heads": 16, "mlp_dim": 5120}
    config = transformers.SamConfig(vision_config={**layers, "global_attn_indexes": [7, 15, 23, 31]})
    with torch.device("meta"):
        network = transformers.SamModel(config).eval()
        image = torch.zeros(1, 3, 1024, 1024)
    found = list(find_networks(SimpleNamespace(opener=SimpleNamespace(network=network), also=[network])))
    printed = published_numbers()
    assert round(count_parameters(found) / 1e6, 2) == printed.number("table-5", "SAM ViT-H", "M parameters")
    with torch.inference_mode():
        flops = count_flops(lambda: network.vision_encoder(image))
    assert flops / 1e9 == pytest.approx(printed.number("table-5", "SAM ViT-H", "GFLOPs"), rel=0.1)


@pytest.mark.parametrize("masked", [False, True])
def test_attention_counts_on_a_processor_too(masked):
    torch = pytest.importorskip("torch")
    query, key, value = torch.rand(3, 2, 50, 16), torch.rand(3, 2, 70, 16), torch.rand(3, 2, 70, 24)
    mask = torch.ones(50, 70, dtype=torch.bool).tril() if masked else None
    value = value[..., :16] if masked else value
    with torch.no_grad():
        flops = count_flops(lambda: torch.nn.functional.scaled_dot_product_attention(query, key, value, mask))
    assert flops == 2 * 3 * 2 * 50 * 70 * (16 + value.shape[3])


def test_a_vision_transformer_counts_as_its_products():
    """The blocks of SimpleClick's smallest network at its usual size: 28 x 28 tokens, four of eight in windows."""
    torch = pytest.importorskip("torch")
    from hardlook.networks.interactive.checkpoints import build_random

    network = build_random("simpleclick", "vit_xtiny").backbone
    tokens, width, window = 28 * 28, 160, 14 * 14
    layers = 8 * 2 * tokens * width * width * (3 + 1 + 4 + 4)
    attention = 4 * 4 * tokens * (tokens + window) * width
    patches = 2 * tokens * 3 * 16 * 16 * width
    added = torch.zeros(1, tokens, width)
    with torch.no_grad():
        flops = count_flops(lambda: network.features(torch.zeros(1, 3, 448, 448), added))
    assert flops == layers + attention + patches


def test_flops_and_parameters_of_a_network_by_hand():
    torch = pytest.importorskip("torch")

    class Convolution:
        def __init__(self):
            self._network = torch.nn.Conv2d(3, 8, 3, padding=1)

        def open(self, image):
            batch = torch.from_numpy(image.copy()).permute(2, 0, 1)[None].float()
            self._network(batch)

            def predict(prompts):
                for _ in prompts:
                    self._network(torch.cat([batch, batch]))
                return [Prompted(np.zeros(image.shape[:2], bool)) for _ in prompts]

            return SimpleNamespace(predict=predict)

    cost = measure_cost(Convolution(), "promptable-segmenter", size=(20, 10), images=1, clicks=2)
    products = 10 * 20 * 8 * 3 * 9
    assert (cost.opening_flops, cost.click_flops) == (2 * products, 4 * products)
    assert cost.parameters == 8 * 3 * 9 + 8


def test_weights_of_replaced_layers_count_as_before():
    torch = pytest.importorskip("torch")
    from hardlook.networks.gpu import copy_without_weights, replace_transposed_convolutions

    network = torch.nn.Sequential(torch.nn.ConvTranspose2d(4, 3, 2, 2), torch.nn.Conv2d(3, 1, 1))
    before = count_parameters([network])
    twin = copy_without_weights(network)
    assert replace_transposed_convolutions(twin) == 1
    assert count_parameters([network, twin]) == count_parameters([twin, network]) == before
    assert replace_transposed_convolutions(network) == 1
    assert count_parameters([network]) == count_parameters([network, twin]) == before == 4 * 3 * 4 + 3 + 4


def test_the_command_prints_the_published_rows_and_writes_a_file(hardlook, tmp_path):
    words = ("clicks", "cost", "disc", "--images", 1, "--clicks", 2, "--size", "48x32", "--out", tmp_path)
    shown = hardlook(*words)
    assert shown.code == 0, shown.err
    assert "1 image of 48x32, 2 clicks on each" in shown.out and "parameters               unknown" in shown.out
    assert "| SAM ViT-H | 641.09 | 5473 | 5.745 | 150" in shown.out
    document = json.loads(hardlook(*words, "--json").out)
    assert document == json.loads((tmp_path / "cost.json").read_text())
    assert document["published"][2]["ms"] == 150
    times = read_click_times(tmp_path / "cost.json")
    assert times.model.startswith("disc on cpu") and times.click == document["cost"]["click"]["mean"]
    maps = json.loads(hardlook("clicks", "cost", "uniform", "--images", 1, "--clicks", 2, "--json").out)
    assert maps["cost"]["role"] == "click-model" and maps["cost"]["opening"]["mean"] == 0


def test_the_command_leaves_threads_as_they_were(hardlook):
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        shown = hardlook("clicks", "cost", "disc", "--images", 1, "--clicks", 1, "--size", "48x32", "--threads", 2)
        assert shown.code == 0 and "2 threads" in shown.out and torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


def test_mistakes_are_named(hardlook):
    assert "--size 640 is not a size" in hardlook("clicks", "cost", "disc", "--size", "640").err
    assert "there is no model 'dics'" in hardlook("clicks", "cost", "dics").err
    with pytest.raises(OptionError, match="encoder"):
        measure_cost(Timed(), "encoder")
