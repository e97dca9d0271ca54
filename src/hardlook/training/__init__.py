"""The training ground: one loop for all networks, on Lightning Fabric.

`loop` trains, validates and resumes; `few_shot_trainee` says what a few-shot method is to it, `few_shot_data` what it
is trained on, `few_shot` trains one into a folder; `recipes.csv` holds the settings.
Every module but this one imports torch, numpy, safetensors and Fabric and no other library, so that a machine with
these alone can train; nothing imports the package but what trains or runs a trained network.
"""

from __future__ import annotations
