"""Models: their roles, how they are named and found, and the built-in ones.

Called like a function, it lists them:

>>> import hardlook
>>> [card.name for card in hardlook.models("planted-*", role="saliency")]
['planted-saliency']
"""

from hardlook.callable_packages import make_callable

make_callable(__name__, "hardlook.models.listing:models")
