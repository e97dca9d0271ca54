"""Networks as models: images are encoded once, checkpoints load by name, sizes come back, folds have their weights."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from one_shot_scenes import scenes, shown  # noqa: E402
from tiny_one_shot import TinyNetwork, train_tiny, use_tiny  # noqa: E402

from hardlook.errors import ModelError, OptionError  # noqa: E402
from hardlook.models.one_shot import network_segmenter as module  # noqa: E402
from hardlook.models.one_shot.network_segmenter import PMM, RPMM, HSNet, PFENet, RePRI, SimPropNet  # noqa: E402
from hardlook.models.registry import build  # noqa: E402
from hardlook.models.roles import Support  # noqa: E402
from hardlook.networks.one_shot.catalogue import find_network, list_networks  # noqa: E402
from hardlook.networks.one_shot.evaluation import vote  # noqa: E402
from hardlook.networks.one_shot.pfenet import PFENet as Network  # noqa: E402
from hardlook.training.one_shot_recipes import change_one_shot_recipe, find_one_shot_recipe  # noqa: E402


@pytest.fixture
def tiny(monkeypatch, one_thread):
    use_tiny(monkeypatch)


def test_each_image_goes_through_the_backbone_once(tiny):
    model = SimPropNet(weights="random:0", size=33)
    own = scenes(4)
    queries = [one.image for one in own for _ in own]
    supports = [[shown(one)] for _ in own for one in own]
    masks = model.segment_queries(queries, supports)
    assert model.encoded == 4
    model.segment_queries(queries[:3], supports[:3])
    assert model.encoded == 4
    assert [mask.shape for mask in masks] == [query.shape[:2] for query in queries]
    assert {mask.dtype for mask in masks} == {np.dtype(bool)}


def test_answers_are_those_of_whole_forward_passes(tiny):
    model = SimPropNet(weights="random:0", size=33)
    first, second, third = scenes(3)
    [mask] = model.segment_queries([first.image], [[shown(second), shown(third)]])
    rule = model.rule
    query = rule.prepare(torch.from_numpy(first.image.copy()).movedim(-1, 0))[None]
    supports = torch.stack([rule.prepare(torch.from_numpy(one.image.copy()).movedim(-1, 0)) for one in (second, third)])
    masks = torch.stack(
        [rule.prepare_mask(torch.from_numpy(shown(one).mask.astype(np.uint8))) for one in (second, third)]
    )
    with torch.no_grad():
        logits = rule.restore(model.net(query, supports[None], masks[None]), *first.image.shape[:2])[0]
    assert np.array_equal(mask, (logits[1] > logits[0]).numpy())


def test_batches_and_other_pairs_change_nothing(tiny):
    own = scenes(5)
    queries, supports = [one.image for one in own], [[shown(one)] for one in reversed(own)]
    alone, together = SimPropNet(weights="random:0", size=33), SimPropNet(weights="random:0", size=33, pairs=4)
    one_by_one = [alone.segment_queries([query], [each])[0] for query, each in zip(queries, supports, strict=True)]
    for mask, other in zip(one_by_one, together.segment_queries(queries, supports), strict=True):
        assert np.array_equal(mask, other)


def test_networks_that_resize_at_once_answer_queries_of_different_sizes(tiny):
    model = RPMM(weights="random:0", size=33, pairs=8)
    first, second = scenes(2)
    queries = [first.image, second.image[:50], first.image[:, :40], second.image]
    masks = model.segment_queries(queries, [[shown(first)]] * 4)
    assert [mask.shape for mask in masks] == [query.shape[:2] for query in queries]
    for query, mask in zip(queries, masks, strict=True):
        assert np.array_equal(model.segment_queries([query], [[shown(first)]])[0], mask)


def test_supports_of_different_numbers_go_together_and_nothing_shown_is_nothing_found(tiny):
    model = SimPropNet(weights="random:0", size=33, pairs=8)
    first, second = scenes(2)
    nothing = Support(second.image, np.zeros(second.image.shape[:2], bool))
    supports = [[shown(second)], [nothing], [shown(second), shown(first)], [shown(first), nothing]]
    masks = model.segment_queries([first.image] * 4, supports)
    assert len(masks) == 4 and not masks[1].any()
    assert np.array_equal(masks[0], model.segment_queries([first.image], [[shown(second)]])[0])


def test_a_mask_of_another_size_is_an_error(tiny):
    scene = scenes(1)[0]
    model = SimPropNet(weights="random:0", size=33)
    with pytest.raises(ModelError, match="a support's mask is"):
        model.segment_queries([scene.image], [[Support(scene.image, np.ones((3, 3), bool))]])


def test_padding_reaches_no_answer_and_is_marked(tiny, monkeypatch):
    seen = []

    def match(self, query, supports, size, query_mask=None):
        seen.append(query_mask)
        return TinyNetwork.match(self, query, supports, size)

    class Spying(TinyNetwork):
        pass

    Spying.match = match
    use_tiny(monkeypatch, Spying)
    model = PFENet(weights="random:0", size=65)
    scene = scenes(1)[0]
    height, width = scene.image.shape[:2]
    model.segment_queries([scene.image], [[shown(scene)]])
    inner = model.rule.find_inner_size(height, width)
    assert (seen[0][0, : inner[0], : inner[1]] == 0).all() and (seen[0][0, inner[0] :] == 255).all()


def test_weights_are_needed_and_named(tiny):
    with pytest.raises(ModelError, match="the network pfenet has no weights") as caught:
        PFENet()
    assert "hardlook train pfenet" in caught.value.remedy
    with pytest.raises(OptionError, match="random:x"):
        PFENet(weights="random:x")
    with pytest.raises(OptionError, match="size=320"):
        PFENet(weights="random:0", size=320)
    with pytest.raises(OptionError, match="too small"):
        HSNet(weights="random:0", size=9)
    with pytest.raises(OptionError, match="reading=other"):
        PFENet(weights="random:0", reading="other")


def test_published_files_load_by_name_and_others_are_explained(tmp_path, tiny):
    path = tmp_path / "fold0.pth"
    state = {f"module.{name}": value for name, value in TinyNetwork().state_dict().items()}
    torch.save({"epoch": 3, "state_dict": state}, path)
    model = PFENet(weights=str(path), size=65)
    assert model.weights_files == (path,)
    for name, value in model.net.state_dict().items():
        assert torch.equal(value, state[f"module.{name}"])
    torch.save({"state_dict": {**state, "module.extra": torch.ones(1)}}, path)
    with pytest.raises(ModelError, match="the weights are none of pfenet on resnet50: 1 unexpected: extra"):
        PFENet(weights=str(path), size=65)


@pytest.mark.parametrize("wrong", ["twice", "whole"])
def test_files_whose_weights_are_there_twice_or_are_whole_numbers_are_refused(tmp_path, tiny, wrong):
    path = tmp_path / "fold0.pth"
    state = {f"module.{name}": value for name, value in TinyNetwork().state_dict().items()}
    other = {
        "twice": {name.removeprefix("module."): 0 * value for name, value in state.items()},
        "whole": {name: value.to(torch.int32) for name, value in state.items()},
    }
    torch.save({"state_dict": {**state, **other[wrong]}}, path)
    with pytest.raises(ModelError, match={"twice": "with and without module", "whole": "whole numbers"}[wrong]):
        PFENet(weights=str(path), size=65)


def test_options_that_a_file_does_not_tell_reach_the_network(hardlook, tmp_path):
    path = tmp_path / "fold0.pth"
    torch.save({"state_dict": Network("resnet50-keras").state_dict()}, path)
    given = {"weights": str(path), "backbone": "resnet50-keras", "size": 65}
    assert PFENet(**given).net.bins == (60, 30, 15, 8)
    assert PFENet(**given, options="bins=1.0 0.5 0.25 0.125").net.bins == (1.0, 0.5, 0.25, 0.125)
    for options, match in (("bin=1", "has no option 'bin'"), ("bins", "no NAME=VALUE")):
        with pytest.raises(OptionError, match=match):
            PFENet(**given, options=options)
    with pytest.raises(OptionError, match="only for files"):
        PFENet(weights="random:0", options="bins=1")
    folder = tmp_path / "out"
    done = hardlook("weights", "import", path, "--as", "pfenet-resnet50-keras", "--out", folder)
    assert not done.code
    assert PFENet(weights=str(folder), options="bins=1.0 0.5 0.25 0.125").net.bins == (1.0, 0.5, 0.25, 0.125)


def test_options_of_a_trained_folder_are_its_own(tiny, tmp_path):
    train_tiny(tmp_path, change_one_shot_recipe(find_one_shot_recipe("hsnet"), {"size": 33, "batch": 2, "epochs": 1}))
    with pytest.raises(OptionError, match="has its own"):
        HSNet(weights=str(tmp_path), options="steps=3")


def test_an_imported_file_is_a_model(hardlook, tmp_path, tiny):
    state = {f"module.{name}": value for name, value in TinyNetwork().state_dict().items()}
    torch.save({"state_dict": state}, tmp_path / "fold0.pth")
    done = hardlook("weights", "import", tmp_path / "fold0.pth", "--as", "pfenet-resnet50", "--out", tmp_path / "out")
    assert not done.code and "missing: none" in done.out
    model = build(str(tmp_path / "out"), "one-shot-segmenter")
    assert model.rule.size == 473 and model.card["imported"]["file"] == "fold0.pth"
    assert all(torch.equal(value, state[f"module.{name}"]) for name, value in model.net.state_dict().items())


def test_every_network_is_a_model_of_that_name():
    for entry in list_networks():
        kind = next(one for one in vars(module).values() if getattr(one, "network", None) == entry.name)
        assert issubclass(kind, module.NetworkSegmenter)
        with pytest.raises(ModelError, match=f"the network {entry.name} has no weights"):
            build(entry.name, "one-shot-segmenter")


@pytest.mark.parametrize("name", ["simpropnet", "pfenet", "rpmm", "hsnet", "repri", "panet"])
def test_real_networks_answer(name, one_thread):
    """With random weights at a small size, on the backbone whose weights can be had."""
    size = {"hsnet": 97}.get(name, 65)
    model = build(name, "one-shot-segmenter", {"weights": "random:1", "backbone": "resnet50-keras", "size": size})
    first, second = scenes(2)
    masks = model.segment_queries([first.image, first.image], [[shown(second)], [shown(second), shown(first)]])
    assert [mask.shape for mask in masks] == [first.image.shape[:2]] * 2 and model.encoded == 2


def test_a_lower_threshold_finds_more(tiny):
    first, second = scenes(2)
    asked = ([first.image], [[shown(second)]])
    found = [
        SimPropNet(weights="random:0", size=33, threshold=one).segment_queries(*asked)[0] for one in (0.2, 0.5, 0.8)
    ]
    assert found[0].sum() > found[1].sum() > found[2].sum() and not (found[2] & ~found[0]).any()
    with pytest.raises(OptionError, match="not a probability"):
        SimPropNet(weights="random:0", size=33, threshold=1)


def test_null_masks_reach_the_network_where_that_is_asked_for(tiny):
    first, second = scenes(2)
    nothing = Support(second.image, np.zeros(second.image.shape[:2], bool))
    options = {"weights": "random:0", "size": 33, "threshold": 0.01}
    asked = ([first.image], [[nothing]])
    assert not SimPropNet(**options).segment_queries(*asked)[0].any()
    model = SimPropNet(**options, null_masks=True)
    model.segment_queries(*asked)
    assert model.encoded == 2


def test_features_of_a_frozen_backbone_are_found_on_disk_by_other_models(tmp_path, monkeypatch, one_thread):
    monkeypatch.setenv("HARDLOOK_CACHE", str(tmp_path))
    first, second = scenes(2)
    asked = ([first.image], [[shown(second)]])
    options = {"weights": "random:3", "backbone": "resnet50-keras", "size": 33}
    plain, fills, finds = (SimPropNet(**options, disk=disk) for disk in (False, True, True))
    expected = plain.segment_queries(*asked)
    for model, passes in ((fills, 2), (finds, 0)):
        assert (model.segment_queries(*asked)[0] == expected[0]).all() and model.encoded == passes


def test_readings_differ_in_the_way_back_and_in_the_network(tiny):
    sound, released = (RePRI(weights="random:0", size=65, reading=name) for name in ("sound", "released"))
    assert not sound.net.released and released.net.released
    assert sound.code_fingerprint() != released.code_fingerprint()


def test_hsnet_as_released_votes_at_the_size_of_the_image(one_thread):
    model = HSNet(weights="random:0", backbone="resnet50-keras", size=97, reading="released")
    torch.manual_seed(0)
    for part in model.net.hpn_learner.modules():
        if isinstance(part, torch.nn.Conv2d):
            torch.nn.init.normal_(part.weight, std=0.1)
    query, *others = scenes(4)
    supports = [shown(one) for one in others]
    [mask] = model.segment_queries([query.image], [supports])

    def prepare(image):
        return model.rule.prepare(torch.from_numpy(image.copy()).movedim(-1, 0))

    masks = torch.stack([model.rule.prepare_mask(torch.from_numpy(one.mask.astype(np.uint8))) for one in supports])
    with torch.no_grad():
        described = model.net.describe(model.net.encode(torch.stack([prepare(one.image) for one in supports])), masks)
        features = model.net.encode(prepare(query.image)[None])
        logits = model.net.match_shots(features, tuple(one[None] for one in described), query.image.shape[:2])
    assert np.array_equal(mask, vote(logits.argmax(2), released=True)[0].numpy())
    assert 0 < mask.mean() < 1


@pytest.mark.parametrize("kind", [PMM, RPMM])
def test_a_released_mixture_has_the_same_start_in_every_run(tmp_path, one_thread, kind):
    path = tmp_path / "fold0.pth.tar"
    torch.save({"state_dict": find_network(kind.network).load().build("resnet50-keras").state_dict()}, path)
    given = {"weights": str(path), "backbone": "resnet50-keras", "size": 33, "reading": "released"}
    first, second = kind(**given), kind(**given)
    assert first.net.released and first.net.starts
    for count, start in first.net.starts.items():
        assert torch.equal(start, second.net.starts[count])


@pytest.mark.parametrize("trained", ["paper", "released"])
def test_the_reading_of_a_folder_is_the_one_that_is_asked_for(tiny, tmp_path, trained):
    """HSNet votes over several supports in one of them; a folder holds its training's reading, which is another one."""
    folder = tmp_path / "folder"
    train_tiny(
        folder,
        change_one_shot_recipe(find_one_shot_recipe("hsnet", reading=trained), {"size": 33, "batch": 2, "epochs": 1}),
    )
    sound, released = (HSNet(weights=str(folder), reading=name) for name in ("sound", "released"))
    assert not sound.net.released and released.net.released
    assert not build(str(folder), "one-shot-segmenter").net.released


@pytest.mark.real
def test_the_prior_of_imagenet_features_lies_on_the_object(shared_data, one_thread):
    """Real photographs and weights: the training-free prior of PFENet prefers pixels of the class."""
    import PIL.Image

    from hardlook.data.voc import open_devkit
    from hardlook.errors import DataError
    from hardlook.models.weights.resnet50_keras import read_resnet50
    from hardlook.networks.one_shot.evaluation import InputRule
    from hardlook.networks.one_shot.pfenet import compute_prior

    try:
        weights = read_resnet50()
    except (DataError, ModelError) as error:
        pytest.skip(str(error))
    devkit = open_devkit(shared_data / "data" / "VOCdevkit" / "VOC2012")
    cats = []
    for path in sorted((devkit.root / "SegmentationClass").glob("*.png")):
        classes = np.asarray(PIL.Image.open(path))
        if set(np.unique(classes)) <= {0, 8, 255} and (classes == 8).mean() > 0.1:
            cats.append(
                (np.asarray(PIL.Image.open(devkit.root / "JPEGImages" / f"{path.stem}.jpg").convert("RGB")), classes)
            )
        if len(cats) == 4:
            break
    network, rule = Network("resnet50-keras").eval(), InputRule(161, padded=True, nearest="opencv")
    network.load_backbone(weights)
    better = []
    with torch.no_grad():
        images = torch.stack([rule.prepare(torch.from_numpy(image.copy()).movedim(-1, 0)) for image, _ in cats])
        masks = torch.stack([rule.prepare_mask(torch.from_numpy(classes == 8).to(torch.uint8)) for _, classes in cats])
        features = network.encode(images)
        _, deep = network.describe(features, masks)
        for query in range(4):
            support = (query + 1) % 4
            prior = compute_prior(features[2][query : query + 1], deep[support][None, None])
            small = torch.nn.functional.interpolate(prior, masks.shape[-2:], mode="bilinear")[0, 0]
            better.append(float(small[masks[query] == 1].mean() - small[masks[query] == 0].mean()))
    # One of the four fills its image, so that there is little to tell apart.
    assert np.mean(better) > 0.1 and sum(one > 0.1 for one in better) >= 3
