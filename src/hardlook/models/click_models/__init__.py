"""Where people click: maps over an error region, from its shape, from what catches the eye, or learnt from clicks.

>>> registered_name("saliency"), registered_name("distance")
('saliency-clicks', 'distance')
"""

# A one-shot segmenter is called `saliency` among all models; where only click models are meant, theirs is.
_SHORT = {"saliency": "saliency-clicks"}


def registered_name(name: str) -> str:
    """The name that a click model is registered by."""
    return _SHORT.get(name, name)
