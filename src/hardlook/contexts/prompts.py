"""The texts that stand for a concept and for a context, as the paper words them.

>>> CONCEPT_PROMPT.replace("{concept}", "cat"), CONTEXT_PROMPT.replace("{context}", "snow")
('a photo of a cat', 'a photo of snow')
"""

CONCEPT_PROMPT = "a photo of a {concept}"
CONTEXT_PROMPT = "a photo of {context}"
