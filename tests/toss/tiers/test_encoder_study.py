"""How far two encoders agree, against scikit-learn."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from hardlook.toss.tiers.attribute_report import MAX_SPOTS
from hardlook.toss.tiers.encoder_study import build_encoder_page, compare_encoders
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
