"""An import contract: no cycles among imports that are carried out. Layers of packages count annotations, too."""

from grimp import ImportGraph, build_graph
from importlinter import ContractCheck
from importlinter.contracts.acyclic_siblings import AcyclicSiblingsContract


class AcyclicImports(AcyclicSiblingsContract):  # type: ignore[misc, unused-ignore]
    """`acyclic_siblings` without the imports under ``TYPE_CHECKING``, which can name the types of modules above."""

    type_name = "acyclic_imports"

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """As import-linter says."""
        roots = self.session_options["root_packages"]
        return super().check(build_graph(*roots, exclude_type_checking_imports=True, cache_dir=None), verbose)
