"""Files of tiny open-vocabulary networks: a network's own, CLIP's and a tokenizer.

Random networks call everything by one word: their queries and texts hardly differ. Here what all have in common is
taken away from both, so that pictures have several labels.
"""

import torch
from tiny_fc_clip import TINY, write_tokenizer

from hardlook.models.open_vocabulary.text_features import spell
from hardlook.models.transformers_folder import pad_tokens
from hardlook.networks.open_vocabulary import cat_seg_checkpoints, fc_clip_checkpoints, san_checkpoints
from hardlook.networks.open_vocabulary.fc_clip import TextClassifier

WORDS = ("cat", "dog", "sky", "tree", "person", "table", "road", "sea")


def build(name, seed=1):
    """The tiny network `name` with random parameters whose answers vary."""
    makers = {
        "fc-clip": fc_clip_checkpoints.build_random,
        "san": san_checkpoints.build_random_san,
        "cat-seg": cat_seg_checkpoints.build_random_cat_seg,
    }
    network = makers[name](TINY, seed=seed)
    rng = torch.Generator().manual_seed(seed)
    # Coarse and fine, bright and dark, as photographs are.
    scales = [
        torch.nn.functional.interpolate(torch.randn(2, 3, cells, cells, generator=rng), (96, 96), mode="bilinear")
        for cells in (1, 6, 24, 96)
    ]
    noise = 0.6 * torch.stack(scales).sum(0)
    with torch.no_grad():
        if name == "fc-clip":
            _vary_fc_clip(network, noise)
        else:
            _vary_texts(network.ov_classifier if name == "san" else network.clip)
        if name == "san":
            last = network.clip_rec_head
            side = network.side_adapter_network
            side.query_embed.mul_(50)
            side.mask_decoder.bias_scaling.weight.mul_(5)
            _centre(side.mask_decoder.query_mlp.layers[-1], lambda: network(noise, torch.eye(24)[:3]), 20)
            with Outputs(last.ln_post) as seen:
                network(noise, torch.eye(24)[:3])
            _leave_out(last.proj, seen.values)
    return network


def write_files(name, folder, *, seed=1):
    """The files of the tiny network `name` in a folder, as arguments of the model; FC-CLIP's hold no CLIP."""
    state = build(name, seed).state_dict()
    folder.mkdir(parents=True, exist_ok=True)
    given = {"weights": folder / f"{name}.pth", "tokenizer": write_tokenizer(folder / "clip")}
    if name == "fc-clip":
        start = fc_clip_checkpoints.CLIP_PREFIX
        clip = {key.removeprefix(start): value for key, value in state.items() if key.startswith(start)}
        state = {key: value for key, value in state.items() if not key.startswith(start)}
        given["clip"] = folder / "clip.bin"
        torch.save(clip, given["clip"])
    torch.save({"model": state, "iteration": 7}, given["weights"])
    return {key: str(value) for key, value in given.items()}


class Outputs:
    """What a module gives while this is open, as rows: `values` (N, D)."""

    def __init__(self, module):
        self.module, self.seen = module, []

    def __enter__(self):
        self.hook = self.module.register_forward_hook(lambda module, given, output: self.seen.append(output))
        return self

    def __exit__(self, *error):
        self.hook.remove()

    @property
    def values(self):
        return torch.cat([one.flatten(0, -2) for one in self.seen])


def _leave_out(projection, vectors):
    """Take away from a projection (inputs, outputs) what its inputs (N, inputs) have in common."""
    mean = vectors.mean(0)
    projection -= torch.outer(mean, mean @ projection) / mean.dot(mean)


def _vary_texts(tower):
    tokens, _ = pad_tokens([spell(f"a photo of a {word}.") for word in WORDS], "cpu")
    with Outputs(tower.ln_final) as seen:
        tower.encode_tokens(tokens)
    _leave_out(tower.text_projection, seen.values)


def _vary_fc_clip(network, noise):
    _vary_texts(network.backbone.clip_model)
    predictor = network.sem_seg_head.predictor
    predictor.query_feat.weight.mul_(12)
    predictor.query_embed.weight.mul_(12)
    last, pooling = predictor.class_embed.layers[-1], network.visual.attnpool.c_proj
    text = TextClassifier(torch.eye(24)[:3], (1, 1, 1), (True, True, False))
    for layer, factor in ((predictor.mask_embed.layers[-1], 20), (last, 1), (pooling, 1)):
        _centre(layer, lambda: network(noise, text), factor)


def _centre(layer, run, factor):
    """Make the outputs of a linear layer vary around zero, `factor` times as much."""
    with Outputs(layer) as seen:
        run()
    layer.bias -= seen.values.mean(0)
    layer.bias *= factor
    layer.weight *= factor
