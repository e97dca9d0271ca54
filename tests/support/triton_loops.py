"""Loops of Triton's interpreter over ranges that a kernel is given: since numpy 2.4 its own conversion is an error."""

import importlib.util

import triton_tests  # before Triton is imported

if importlib.util.find_spec("triton") is not None and triton_tests.DEVICE.type == "cpu":
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patch_lang_tensor(tensor, scope):
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))

    interpreter._patch_lang_tensor = patch_lang_tensor
