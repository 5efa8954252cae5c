"""All mutants, by name."""

from typing import Final

from reattach.runtime.mutants import ahead, asking, exchange, sending, threads
from reattach.runtime.mutants.mutant import Mutant

MUTANTS: Final[dict[str, Mutant]] = {
    mutant.name: mutant for part in (asking, sending, threads, exchange, ahead) for mutant in part.MUTANTS
}
