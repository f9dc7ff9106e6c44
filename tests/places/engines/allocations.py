"""What tests see of torch's allocations: failures on demand, and the largest one."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

FAILURE = getattr(torch, "OutOfMemoryError", torch.cuda.OutOfMemoryError)


class Allocations(TorchDispatchMode):
    """Counts the operations of this thread that allocate a tensor; those numbered in `fail` find no memory."""

    def __init__(self, fail=()):
        super().__init__()
        self.count, self.largest, self.fail = 0, 0, set(fail)

    def __torch_dispatch__(self, function, types, arguments=(), options=None):
        returns = function._schema.returns
        fresh = bool(returns) and not any(part.alias_info for part in returns)
        if fresh:
            self.count += 1
            if self.count in self.fail:
                raise FAILURE(f"allocation {self.count} was made to fail")
        found = function(*arguments, **(options or {}))
        for tensor in (found if isinstance(found, tuple | list) else (found,)) if fresh else ():
            if isinstance(tensor, torch.Tensor) and tensor.layout is torch.strided:
                self.largest = max(self.largest, tensor.numel() * tensor.element_size())
        return found
