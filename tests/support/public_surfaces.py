"""An import contract: what one distribution imports of another is public. import-linter has no wildcard for names."""

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output
from importlinter.application.contract_utils import AlertLevel, remove_ignored_imports_and_report


class PublicSurfaces(Contract):  # type: ignore[misc, unused-ignore]
    """No module imports a private module, or one of a private package, of another distribution.

    Configuration options:
        - ignore_imports: imports that are left for later. (Optional.)
        - unmatched_ignore_imports_alerting: as in the contracts of import-linter.
    """

    type_name = "public_surfaces"

    ignore_imports = fields.SetField(subfield=fields.ImportExpressionField(), required=False)
    unmatched_ignore_imports_alerting = fields.EnumField(AlertLevel, default=AlertLevel.ERROR)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """As import-linter says."""
        removal = remove_ignored_imports_and_report(
            graph,
            self.ignore_imports,  # type: ignore[arg-type]
            self.unmatched_ignore_imports_alerting,  # type: ignore[arg-type]
        )
        roots = {name.partition(".")[0] for name in self.session_options["root_packages"]}
        crossings = [
            (importer, imported)
            for imported in sorted(graph.modules)
            if imported.partition(".")[0] in roots and any(part.startswith("_") for part in imported.split("."))
            for importer in sorted(graph.find_modules_that_directly_import(imported))
            if importer.partition(".")[0] != imported.partition(".")[0]
        ]
        return ContractCheck(
            kept=not crossings,
            warnings=list(removal.warnings),
            ignored_import_count=removal.ignored_import_count,
            metadata={"crossings": crossings},
        )

    def render_broken_contract(self, check: ContractCheck) -> None:
        """As import-linter says."""
        for importer, imported in check.metadata["crossings"]:
            output.print_error(f"{importer} imports {imported}, a private module of another distribution", bold=False)
        output.print_error("Import it from a public module, or make what is needed public there.", bold=False)
