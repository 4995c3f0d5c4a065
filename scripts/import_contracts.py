"""A contract for import-linter: each folder has one door."""

from __future__ import annotations

import grimp
from importlinter import Contract, ContractCheck, fields, output


class DoorsContract(Contract):
    """A file is imported by its own folder and the folders inside of that; others import from the folder's door.

    The door is the folder's `__init__`. Options:
        package: the package whose folders are looked at.
        exceptions: imports, as "importer -> imported", that may pass by a door.
    """

    type_name = "doors"

    package = fields.StringField()
    exceptions = fields.SetField(subfield=fields.StringField(), required=False)

    def check(self, graph: grimp.ImportGraph, verbose: bool) -> ContractCheck:
        """Find the imports of files that pass by the door of their folder."""
        del verbose
        exceptions = set(self.exceptions or ())  # type: ignore[call-overload]
        found = []
        for importer in sorted(graph.find_descendants(self.package) | {self.package}):
            at_home = importer if graph.find_children(importer) else importer.rpartition(".")[0]
            for imported in sorted(graph.find_modules_directly_imported_by(importer)):
                if not imported.startswith(f"{self.package}.") or graph.find_children(imported):
                    continue
                folder = imported.rpartition(".")[0]
                if at_home == folder or at_home.startswith(f"{folder}."):
                    continue
                if f"{importer} -> {imported}" in exceptions:
                    exceptions.remove(f"{importer} -> {imported}")
                else:
                    found.append((importer, imported))
        return ContractCheck(kept=not found and not exceptions, metadata={"found": found, "unused": exceptions})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Name each import that passes by a door, and each exception that there is no use for."""
        for importer, imported in check.metadata["found"]:
            folder = imported.rpartition(".")[0]
            output.print(f"{importer} imports {imported}: import from {folder}, whose __init__ names it")
        for exception in sorted(check.metadata["unused"]):
            output.print(f"no such import: {exception}")
