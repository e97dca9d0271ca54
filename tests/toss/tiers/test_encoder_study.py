"""How far two encoders agree, against scikit-learn."""

from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from hardlook.errors import DataError
from hardlook.models.roles import Features
from hardlook.toss.tiers.attribute_report import MAX_SPOTS
from hardlook.toss.tiers.attributes import FailedImage
from hardlook.toss.tiers.dataset import OpenedData
from hardlook.toss.tiers.encoder_study import build_encoder_page, compare_encoders, run_encoder_study
from hardlook.toss.tiers.similarity import pair_cosines


def test_agreement_and_kappa_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    first = rng.random(400)
    second = np.clip(first + rng.normal(0, 0.3, 400), 0, 1)
    found = compare_encoders({"a": first, "b": second}, [str(n // 4) for n in range(400)])
    one, other = first > first.mean(), second > second.mean()
    assert found.kappa == pytest.approx(cohen_kappa_score(one, other))
    assert found.agreement.value == pytest.approx((one == other).mean())
    assert found.agreement.interval.n == 100 and found.agreement.value in found.agreement.interval


def test_an_encoder_agrees_with_itself_turned_or_scaled():
    rng = np.random.default_rng(1)
    vectors = rng.normal(size=(20, 8))
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    turn, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    pairs = [(f"1_{a}", f"1_{b}") for a in range(20) for b in range(20) if a != b]
    cosines = {
        name: pair_cosines({str(n): row for n, row in enumerate(own)}, lambda token: token[2:], pairs)
        for name, own in (("plain", unit), ("turned", unit @ turn))
    }
    assert np.allclose(cosines["plain"], [unit[int(a[2:])] @ unit[int(b[2:])] for a, b in pairs])
    assert compare_encoders(cosines, [a for a, _ in pairs]).agreement.value > 0.99


def test_the_page_shows_the_agreement_in_percent_beside_the_published_ones():
    rng = np.random.default_rng(2)
    cosines = {"a": rng.random(40), "b": rng.random(40)}
    agreement = compare_encoders(cosines, [str(n) for n in range(40)])
    (section, *_), document = build_encoder_page(cosines, agreement)
    dots, scatter, spread = section.blocks
    (dot,) = dots.rows
    assert dot.value == pytest.approx(100 * agreement.agreement.value)
    assert (dot.low, dot.high) == pytest.approx(
        (100 * agreement.agreement.interval.low, 100 * agreement.agreement.interval.high)
    )
    groups = [
        "agree" if one else "disagree"
        for one in (cosines["a"] > cosines["a"].mean()) == (cosines["b"] > cosines["b"].mean())
    ]
    assert [spot.group for spot in scatter.spots] == groups
    assert [(spot.x, spot.y) for spot in scatter.spots] == list(zip(cosines["a"], cosines["b"], strict=True))
    assert dict(dots.references) == {
        f"{k} and CLIP (published)": v for k, v in document["published_percent_with_clip"].items()
    }
    assert dict(spread.groups).keys() == {"a", "b"} and document["pairs"] == 40


@pytest.mark.parametrize(
    ("pairs", "step"), [(2, 1), (MAX_SPOTS, 1), (MAX_SPOTS + 1, 2), (2 * MAX_SPOTS, 2), (2 * MAX_SPOTS + 1, 3)]
)
def test_a_chart_of_many_pairs_draws_evenly_spaced_ones_and_says_so(pairs, step):
    cosines = {"a": np.linspace(0, 1, pairs), "b": np.linspace(1, 0, pairs)}
    # Two images, so that the interval is quick.
    agreement = compare_encoders(cosines, [str(n % 2) for n in range(pairs)])
    (section, *_), document = build_encoder_page(cosines, agreement)
    scatter = section.blocks[1]
    assert [spot.x for spot in scatter.spots] == cosines["a"][::step].tolist()
    assert [spot.y for spot in scatter.spots] == cosines["b"][::step].tolist()
    assert f"every {step}. drawn" in scatter.caption and document["pairs"] == pairs


@pytest.mark.parametrize(
    ("turned", "value", "bounds"), [(1, 1, (0.025 ** (1 / 30), 1)), (-1, 0, (0, 1 - 0.025 ** (1 / 30)))]
)
def test_where_all_pairs_agree_or_none_the_bounds_are_those_of_a_share(turned, value, bounds):
    cosines = np.arange(30.0)
    found = compare_encoders({"a": cosines, "b": turned * cosines}, [str(place) for place in range(30)]).agreement
    # Clopper and Pearson.
    assert found.value == value and (found.interval.low, found.interval.high) == pytest.approx(bounds)


class Pictures:
    """Images of one colour, named by their brightness; class 1 is cats, class 2 dogs."""

    def class_of(self, token):
        return {"1": "cat", "2": "dog"}[token.partition("_")[0]]

    def image_of(self, token):
        return token.partition("_")[2]

    def read_image(self, token):
        return np.full((8, 8, 3), int(self.image_of(token)), np.uint8)


def encoder(broken=()):
    """A named model whose vectors turn with the brightness; images of a brightness in `broken` raise."""

    def encode(images):
        values = [float(image[0, 0, 0]) for image in images]
        if set(values) & set(broken):
            raise RuntimeError("no such picture")
        return Features(np.array([(np.cos(one / 99), np.sin(one / 99)) for one in values], np.float32))

    return SimpleNamespace(model=SimpleNamespace(encode=encode, dimension=2), facts=lambda: {"broken": sorted(broken)})


def study(tokens, models, failures=()):
    opened = OpenedData(Pictures(), tuple(tokens), tuple(failures))
    return run_encoder_study(opened, models, seed=0, start=lambda total, done: lambda more, failed: None)


def test_an_image_that_fails_with_both_encoders_is_listed_once():
    tokens = ("1_10", "1_20", "1_90", "2_30", "2_40")
    first = FailedImage("99", "cut off")
    sections, document, failed = study(tokens, {"a": encoder({90.0}), "b": encoder({90.0, 40.0})}, [first])
    assert [failure.image for failure in failed] == ["99", "90", "40"]
    # Only two cats are known to both, and each is the other's partner.
    assert (sections[0].title, document["pairs"]) == ("Agreement", 2)
    assert document["models"] == [{"broken": [90.0]}, {"broken": [40.0, 90.0]}]


def test_without_two_images_of_a_class_the_reason_is_said():
    with pytest.raises(DataError, match=r"no two images of one class to compare \(every class has one image\)"):
        study(("1_10", "2_20"), {"a": encoder(), "b": encoder()})
    with pytest.raises(DataError, match=r"\(1 image failed, the first: 20: RuntimeError: no such picture\)"):
        study(("1_10", "1_20"), {"a": encoder({20.0}), "b": encoder()})


def test_where_one_encoder_says_the_same_of_all_pairs_kappa_is_nothing():
    alike = compare_encoders({"a": np.ones(4), "b": np.ones(4)}, list("wxyz"))
    assert np.isnan(alike.kappa) and alike.agreement.value == 1.0 and alike.pairs == 4
    _, document = build_encoder_page({"a": np.ones(4), "b": np.ones(4)}, alike)
    assert document["kappa"] is None and document["spearman"] is None
    half = compare_encoders({"a": np.ones(4), "b": np.array([0.0, 0, 1, 1])}, list("wxyz"))
    assert (half.kappa, half.agreement.value) == (0.0, 0.5)


def test_the_summary_has_the_numbers_of_the_agreement():
    cosines = {"a": np.array([0.1, 0.9, 0.8]), "b": np.array([0.2, 0.7, 0.1])}
    _, document = build_encoder_page(cosines, compare_encoders(cosines, ["x", "y", "z"]))
    assert document["summary"] == (
        "a and b agree on 66.7 % of 3 same-class pairs (kappa 0.40, Spearman of the cosines 0.50)."
    )
