"""The kernel that moves data, implemented by the backends of the two memories."""

from typing import Any

from tenferro_tensor._place import Place
from tenferro_tensor._registry import REGISTRY
from tenferro_tensor._spec import Spec
from tenferro_tensor.backends import get_backend
from tenferro_tensor.catalog import placement as ops
from tenferro_tensor.reference._table import Kernel, Special, Table, any_size, unchanged


def kernels(xp: Any, special: Special) -> Table:
    """The kernel maker of `transfer`, which does not depend on the array module."""
    return {ops.transfer: transfer}


@any_size
def transfer(ins: tuple[Spec, ...], outs: tuple[Spec, ...], *, place: Place) -> Kernel:
    """Transfers between two accelerators go through main memory; a backend may register a direct path."""
    source, target = ins[0].place, place
    if source.memory_space is target.memory_space:
        return unchanged
    if source.memory_space.kind == "host":
        return _upload(target)
    download = get_backend(source.device.kind).download
    if target.memory_space.kind == "host":
        return download
    upload = _upload(target)
    return lambda raw: upload(download(raw))


def _upload(target: Place) -> Kernel:
    backend, device = get_backend(target.device.kind), target.device
    return lambda raw: backend.upload(raw, device)


REGISTRY.kernel(ops.transfer, "*", transfer)  # it follows from `upload` and `download`, which every backend has
