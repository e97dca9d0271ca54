"""How a SAM-like model is driven: how many masks it is asked for, and whether it sees its own last answer.

Papers differ on both, so both are options, and the report says which ran. The default is that of RClicks (three masks
at every click, the previous logits given back).

>>> PromptPolicy(multimask="first").several(1), PromptPolicy(multimask="first").several(2)
(True, False)
>>> PromptPolicy("never", previous=False).words()
'One mask at every click; previous logits not given back.'
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from hardlook.errors import OptionError

Multimask = Literal["always", "first", "never"]
_MASKS = {
    "always": "Three masks at every click, the one with the highest predicted IoU",
    "first": "Three masks at the first click, the one with the highest predicted IoU, one mask afterwards",
    "never": "One mask at every click",
}


@dataclass(frozen=True)
class PromptPolicy:
    """Which masks are asked for, and what is given back.

    `multimask`: at which clicks the model proposes three masks, of which the one with the highest predicted IoU is
    taken; at the others it gives one. `previous`: whether the low-resolution logits of the mask taken at the click
    before are part of the prompt.

    >>> PromptPolicy(multimask="often")
    Traceback (most recent call last):
    ...
    hardlook.errors.OptionError: no prompt policy has multimask='often'
      remedy: multimask is one of always, first, never
    """

    multimask: Multimask = "always"
    previous: bool = True

    def __post_init__(self) -> None:
        if self.multimask not in get_args(Multimask):
            raise OptionError(
                f"no prompt policy has multimask={self.multimask!r}",
                remedy=f"multimask is one of {', '.join(get_args(Multimask))}",
            )
        if not isinstance(self.previous, bool):
            raise OptionError(
                f"no prompt policy has previous={self.previous!r}", remedy="previous is true or false, not a text"
            )

    def several(self, clicks: int) -> bool:
        """Whether three masks are asked for when the prompt holds so many clicks (from 1).

        >>> [PromptPolicy(multimask=name).several(3) for name in ("always", "first", "never")]
        [True, False, False]
        """
        return self.multimask == "always" or (self.multimask == "first" and clicks <= 1)

    def words(self) -> str:
        """One sentence for reports.

        >>> PromptPolicy("never").words()
        'One mask at every click; previous logits given back.'
        """
        return f"{_MASKS[self.multimask]}; previous logits {'' if self.previous else 'not '}given back."
