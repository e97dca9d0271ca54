"""MAML, ANIL and BOIL: the released code, and what their variants change."""

import pytest
import torch
from few_shot_goldens import check_episode_case, check_images_case, list_cases
from goldens import read_golden

from hardlook.networks.backbones import build_backbone
from hardlook.networks.few_shot.anil import Anil
from hardlook.networks.few_shot.boil import Boil
from hardlook.networks.few_shot.maml import Maml
from hardlook.networks.few_shot.method import cross_entropy


def read_sizes(name, case):
    """Channels and ways of a case, from its linear layer."""
    ways, channels = read_golden("few_shot", f"method_{name}").parameters(case)["classifier.layers.0.weight"]
    return {"channels": channels, "ways": ways}


@pytest.mark.parametrize("case", list_cases("maml"))
def test_maml_equals_the_released_code(case):
    # In ten steps of float32 another element may win a max pooling by its last bit, which moves scores by 1e-3.
    make = lambda: Maml(build_backbone("conv64f"), **read_sizes("maml", case))  # noqa: E731
    check_images_case("maml", case, make, {"logits": {}}, float32=3e-3)


@pytest.mark.parametrize("case", list_cases("anil", choose=lambda case: case.startswith("conv")))
def test_anil_equals_the_released_code(case):
    make = lambda: Anil(build_backbone("conv64f"), **read_sizes("anil", case))  # noqa: E731
    check_images_case("anil", case, make, {"logits": {}})


@pytest.mark.parametrize("case", list_cases("anil", choose=lambda case: case.startswith("d")))
def test_anil_on_features_equals_the_released_code(case):
    check_episode_case(read_golden("few_shot", "method_anil"), case, lambda: Anil(**read_sizes("anil", case)))


@pytest.mark.parametrize("case", list_cases("boil"))
def test_boil_equals_the_released_code(case):
    ways = {"NIL": "nil", "Once_update": "update", "Directly": "directly"}
    scores = {f"logits_{name}": {"test": test} for name, test in ways.items()}
    make = lambda: Boil(build_backbone("conv64f"), **read_sizes("boil", case), released=True)  # noqa: E731
    check_images_case("boil", case, make, scores)


def small(method, **options):
    torch.manual_seed(0)
    return method(build_backbone("conv64f", channels=8), channels=8, ways=3, **options).double()


def images(tasks=2, ways=3, shots=2, queries=3):
    from hardlook.networks.few_shot.method import Episodes

    rng = torch.Generator().manual_seed(1)
    support = torch.randn(tasks, ways, shots, 3, 16, 16, generator=rng, dtype=torch.float64)
    query = torch.randn(tasks, queries, 3, 16, 16, generator=rng, dtype=torch.float64)
    return Episodes(support, query, torch.arange(queries).expand(tasks, -1) % ways)


def test_the_head_of_boil_moves_only_as_released():
    episodes = images()
    sound, released = small(Boil).eval(), small(Boil, released=True).eval()
    assert not torch.allclose(sound.classify(episodes), released.classify(episodes))


def test_the_second_answer_of_anil_differs_only_as_released():
    episodes = images()
    sound, released = small(Anil).eval(), small(Anil, released=True).eval()
    first = sound.classify(episodes)
    assert torch.equal(first, sound.classify(episodes))
    assert torch.allclose(first, released.classify(episodes))
    assert not torch.allclose(first, released.classify(episodes))


def test_the_released_loss_of_boil_is_divided_by_the_tasks_once_more():
    episodes = images(tasks=3)
    for released, count in ((False, 1), (True, 3)):
        loss, scores = small(Boil, released=released).train().loss(episodes)
        torch.testing.assert_close(loss * count, cross_entropy(scores, episodes.labels))


@pytest.mark.parametrize("method", [Maml, Boil])
def test_a_task_does_not_see_the_other_tasks(method):
    episodes = images()
    scores = small(method).eval().classify(episodes)
    from dataclasses import replace

    for task in range(2):
        one = replace(episodes, support=episodes.support[task : task + 1], query=episodes.query[task : task + 1])
        torch.testing.assert_close(small(method).eval().classify(one)[0], scores[task], rtol=1e-9, atol=1e-10)
