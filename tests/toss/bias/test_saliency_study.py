"""Saliency bias: the salience of targets, the blurred queries, and what SSSI gains by plain loops."""

import numpy as np
import one_shot_oracle as oracle
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.ndimage import gaussian_filter

from hardlook.errors import OptionError
from hardlook.harness.options import fields_that_change, parse_options
from hardlook.harness.runs.in_memory import InMemoryRun
from hardlook.models.registry import build
from hardlook.toss.bias.saliency_study import BIAS_SALIENCY, blur_salient_region, suppress_salience
from hardlook.toss.bias.support_study import BIAS_SUPPORT
from hardlook.world.signature import read_signature


@pytest.fixture(scope="module")
def rehearsal(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HARDLOOK_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield InMemoryRun("bias-saliency", {"scenes": 24, "resamples": 0, "pairs_a_class": 12})


@pytest.fixture(scope="module")
def shown(rehearsal):
    """{pair: {condition: read pair}}."""
    found = {}
    for batch in rehearsal.prepared:
        for unit in batch.units:
            found.setdefault(unit.payload.slices["pair"], {})[unit.payload.slices["condition"]] = unit.payload
    return found


def salient_mask(image):
    [saliency] = build("planted-saliency", role="saliency", args={}).saliency([image])
    return saliency > 0.5


def test_every_pair_is_asked_plain_and_suppressed(shown):
    assert len(shown) > 30
    for pairs in shown.values():
        assert set(pairs) == {"plain", "suppressed"}
        assert pairs["plain"].query == pairs["suppressed"].query
        assert pairs["plain"].supports == pairs["suppressed"].supports
        assert (pairs["plain"].support[0].image == pairs["suppressed"].support[0].image).all()


def test_salience_is_the_iou_of_target_and_saliency_mask(shown):
    for pairs in shown.values():
        plain = pairs["plain"]
        salient, target = salient_mask(plain.image), plain.truth.mask
        expected = (salient & target).sum() / (salient | target).sum()
        for pair in pairs.values():
            assert pair.slices["salience"] == pytest.approx(expected)


def test_a_blurred_query_differs_inside_the_salient_mask_only(shown):
    changed = 0
    for pairs in shown.values():
        plain, blurred = pairs["plain"].image, pairs["suppressed"].image
        # The three lowest bits are the signature, which is written anew.
        different = (plain >> 3 != blurred >> 3).any(axis=2)
        assert not different[~salient_mask(plain)].any()
        changed += different.any()
        before, after = read_signature(plain), read_signature(blurred)
        assert (before.classes == after.classes).all()
        assert not after.salient.any()
    assert changed > len(shown) / 2


def test_a_photograph_keeps_every_bit_outside_the_salient_mask():
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (60, 80, 3), np.uint8)
    salient = np.zeros((60, 80), bool)
    salient[10:40, 20:70] = True
    blurred = suppress_salience(image, salient, 0.1)
    assert (blurred[~salient] == image[~salient]).all()
    # Noise this wide a Gaussian makes nearly flat.
    assert blurred[salient].std() < image[salient].std() / 4


def test_a_model_that_follows_salience_gains_from_suppression(rehearsal):
    half, fully = (rehearsal.score("planted-one-shot", {"saliency": dial}) for dial in (0.5, 1.0))
    for card in (half, fully):
        assert card.get("salience-gap").value > 0.3
        assert card.get("gain").value > 0.1
        assert card.get("non-salient-gain").value > 0.1
    # Where nothing is salient any more the model finds what its support shows.
    assert fully.get("suppressed-all").value == 1


def test_a_model_without_fault_gains_nothing(rehearsal):
    card = rehearsal.score("planted-one-shot", {"saliency": 0.0})
    assert {name: card.get(name).value for name in ("base", "sssi", "salient", "non-salient")} == {
        "base": 1, "sssi": 1, "salient": 1, "non-salient": 1,
    }  # fmt: skip
    assert [card.get(name).value for name in ("gain", "non-salient-gain", "salience-gap")] == [0, 0, 0]


def expected_scores(rows, above, void):
    """The study's scores by plain loops."""
    salient = [row for row in rows if row["salience"] > above]
    other = [row for row in rows if row["salience"] <= above]
    plain, blurred = oracle.of(rows, condition="plain"), oracle.of(rows, condition="suppressed")
    # SSSI blurs where the target is known not to be salient.
    helped = oracle.of(salient, condition="plain") + oracle.of(other, condition="suppressed")
    chosen = {
        "base": plain, "sssi": helped, "suppressed-all": blurred,
        "salient": oracle.of(salient, condition="plain"), "non-salient": oracle.of(other, condition="plain"),
        "non-salient-sssi": oracle.of(other, condition="suppressed"),
        "salient-suppressed": oracle.of(salient, condition="suppressed"),
    }  # fmt: skip
    means = {name: oracle.miou(own, void) for name, own in chosen.items()}
    expected = {(name, ()): value for name, value in means.items()}
    for name, first, second in (
        ("gain", "sssi", "base"),
        ("non-salient-gain", "non-salient-sssi", "non-salient"),
        ("salience-gap", "salient", "non-salient"),
    ):
        absent = means[first] is None or means[second] is None
        expected[name, ()] = None if absent else means[first] - means[second]
    for name in ("base", "sssi"):
        for fold in oracle.values_of(chosen[name], "fold"):
            expected[name, (("fold", str(fold)),)] = oracle.miou(oracle.of(chosen[name], fold=fold), void)
        for label in oracle.values_of(chosen[name], "class"):
            expected[name, (("class", label),)] = oracle.iou(oracle.of(chosen[name], **{"class": label}), void)
    expected |= {(name, ()): value for name, value in oracle.following(chosen["non-salient"], void).items()}
    return {key: np.nan if value is None else value for key, value in expected.items()}


@pytest.mark.parametrize("void", ["ignored", "background"])
@pytest.mark.parametrize("above", [0.2, 0.5, 0.99])
def test_scores_are_those_of_plain_loops(rehearsal, above, void):
    records = rehearsal.records("planted-one-shot", {"saliency": 0.6, "ragged": 0.5})
    options = rehearsal.options.model_copy(update={"reading": {"void": void}, "salient_above": above})
    card = BIAS_SALIENCY.score(records, options)
    found = {(score.name, tuple(sorted(score.slice.items()))): score.value for score in card.scores}
    assert found == pytest.approx(expected_scores(records.to_dicts(), above, void), nan_ok=True)


@pytest.mark.parametrize(
    ("salience", "absent", "there"), [(0.1, "salient", "non-salient"), (0.9, "non-salient", "salient")]
)
def test_pairs_of_one_kind_leave_the_other_undefined_and_say_so(rehearsal, salience, absent, there):
    records = rehearsal.records("empty").with_columns(salience=pl.lit(salience))
    card = BIAS_SALIENCY.score(records, rehearsal.options)
    assert np.isnan(card.get(absent).value)
    assert np.isnan(card.get("salience-gap").value)
    assert card.get(there).value == 0
    assert [note.what for note in card.left_out] == [f"scores of {absent} targets"]


def test_a_target_without_a_salience_is_not_salient_and_is_counted(rehearsal):
    records = rehearsal.records("planted-one-shot", {"saliency": 0.6})
    some = records["pair"].unique().sort().head(3).to_list()
    value = {"nan": np.nan, "none": 0.0}
    cards = {
        name: BIAS_SALIENCY.score(
            records.with_columns(
                salience=pl.when(pl.col("pair").is_in(some)).then(pl.lit(salience)).otherwise(pl.col("salience"))
            ),
            rehearsal.options,
        )
        for name, salience in value.items()
    }
    assert [score.value for score in cards["nan"].scores] == [score.value for score in cards["none"].scores]
    [note] = [note for note in cards["nan"].left_out if note.what == "targets without a salience"]
    assert note.count == 3
    assert not [note for note in cards["none"].left_out if note.what == "targets without a salience"]


def test_the_saliency_model_takes_arguments(tmp_path, monkeypatch):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path))
    given = {"scenes": 24, "resamples": 0, "pairs_a_class": 2, "saliency": "planted-saliency"}
    plain, centred = (InMemoryRun("bias-saliency", {**given, "saliency_args": args}) for args in ("", "centre=1"))
    [unit, *_] = centred.prepared[0].units
    [there] = build("planted-saliency", role="saliency", args={"centre": 1}).saliency([unit.payload.image])
    assert (unit.payload.salient == (there > 0.5)).all()
    assert BIAS_SALIENCY.sources(plain.options) != BIAS_SALIENCY.sources(centred.options)


def test_the_page_holds_masks_against_target_and_salience(rehearsal):
    records = rehearsal.records("planted-one-shot", {"saliency": 1.0})
    # The jackknife interval of these seventeen query images includes 0.
    options = rehearsal.options.model_copy(update={"resamples": 100, "interval": "percentile"})
    card = BIAS_SALIENCY.score(records, options)
    assert card.get("salience-lead").interval.low > 0
    gap = BIAS_SALIENCY.report(records, card)[0]
    assert "This model follows salience instead of the support" in gap.text
    assert "a supervised model may have one too" in gap.text
    assert "Targets that are not salient: what the masks go with" in [block.title for block in gap.blocks]


def test_option_errors_name_the_command_that_has_the_options():
    for kind, command in (
        (BIAS_SALIENCY.options, "hardlook bias saliency"),
        (BIAS_SUPPORT.options, "hardlook bias support"),
    ):
        with pytest.raises(OptionError, match=f"{command} --help"):
            parse_options(kind, {"pairs_a_class": 0})


def test_the_threshold_may_change_without_asking_the_model_again():
    assert "salient_above" in fields_that_change(BIAS_SALIENCY.options, "scores")
    assert {"sigma", "saliency"} <= fields_that_change(BIAS_SALIENCY.options, "answers")


def photograph(seed, height=40, width=60):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 256, (height, width, 3), dtype=np.uint8)


def disc(height=40, width=60, radius=12):
    rows, columns = np.ogrid[:height, :width]
    return (rows - height / 2) ** 2 + (columns - width / 3) ** 2 < radius**2


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5])
def test_inside_is_scipys_gaussian_of_the_whole_image(share):
    image, mask = photograph(0), disc()
    sigma = share * np.hypot(40, 60)
    # The kernel ends after whole pixels: as many as scipy takes for this radius.
    radius = int(np.ceil(3 * sigma))
    theirs = np.stack(
        [gaussian_filter(image[..., c].astype(float), sigma, mode="reflect", radius=radius) for c in range(3)], axis=-1
    )
    ours = blur_salient_region(image, mask, sigma_share=share)
    assert np.abs(ours[mask] - theirs[mask]).max() < 0.51


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 0.6))
def test_outside_stays_bit_for_bit_and_the_input_is_left_alone(seed, share):
    image = photograph(seed, 20, 30)
    mask = np.random.default_rng(seed).random((20, 30)) < 0.3
    before = image.copy()
    after = blur_salient_region(image, mask, sigma_share=share)
    assert (after[~mask] == image[~mask]).all() and (image == before).all()
    assert after.min() >= image.min() and after.max() <= image.max()


def test_inside_is_smoothed_and_a_wider_gaussian_smooths_more():
    image, mask = photograph(1), disc()
    spreads = [blur_salient_region(image, mask, sigma_share=share)[mask].std(axis=0).mean() for share in (0.02, 0.1)]
    assert image[mask].std(axis=0).mean() > spreads[0] > spreads[1]


def test_nothing_salient_changes_nothing_and_a_flat_image_stays_flat():
    image = photograph(2)
    unchanged = blur_salient_region(image, np.zeros((40, 60), bool))
    assert (unchanged == image).all() and unchanged is not image
    flat = np.full((9, 14, 3), 77, np.uint8)
    assert (blur_salient_region(flat, np.ones((9, 14), bool)) == 77).all()


@pytest.mark.parametrize(
    ("image", "mask", "share", "message"),
    [
        (np.zeros((4, 4), np.uint8), np.zeros((4, 4), bool), 0.1, r"expected \(H, W, 3\) of uint8, got \(4, 4\)"),
        (np.zeros((4, 4, 3), np.float32), np.zeros((4, 4), bool), 0.1, "of float32"),
        (np.zeros((4, 4, 3), np.uint8), np.zeros((4, 5), bool), 0.1, r"expected \(4, 4\) of bool, got \(4, 5\)"),
        (np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4), np.uint8), 0.1, "of uint8"),
        (np.zeros((4, 4, 3), np.uint8), np.zeros((4, 4), bool), 0.0, "more than 0"),
    ],
)
def test_wrong_input_is_named(image, mask, share, message):
    with pytest.raises(ValueError, match=message):
        blur_salient_region(image, mask, sigma_share=share)


def test_a_gain_counts_each_pair_once(rehearsal, shown):
    card = rehearsal.score("planted-one-shot", {"saliency": 0.5})
    others = sum(pairs["plain"].slices["salience"] <= 0.5 for pairs in shown.values())
    assert {card.get(name).n for name in ("base", "sssi", "gain", "salience-gap")} == {len(shown)}
    assert {card.get(name).n for name in ("non-salient", "non-salient-gain")} == {others}
    assert 0 < others < len(shown)


def test_folds_are_chosen_as_in_toss():
    given = {"scenes": 24, "resamples": 0, "pairs_a_class": 1}
    ids = {
        folds: {
            unit.id
            for batch in InMemoryRun("bias-saliency", {**given, "folds": folds}).prepared
            for unit in batch.units
        }
        for folds in ("0", "1", None)
    }
    assert ids["0"] | ids["1"] == ids[None] and ids["0"].isdisjoint(ids["1"])
    assert all(name.startswith("fold1-") for name in ids["1"])
