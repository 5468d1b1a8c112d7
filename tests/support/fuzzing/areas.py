"""All areas by name, in the order in which a campaign tries them."""

from fuzzing.archives import Archives
from fuzzing.area import Area
from fuzzing.gradients import Gradients
from fuzzing.indexing import Indexing
from fuzzing.interchange import Interchange
from fuzzing.layouts import Layouts
from fuzzing.objects import Objects
from fuzzing.planted import Planted
from fuzzing.plugins import Plugins
from fuzzing.processes import Processes
from fuzzing.programs import Programs
from fuzzing.singles import Singles
from fuzzing.sized import Sized
from fuzzing.subscripts import Subscripts
from fuzzing.views import Views

_ALL = (
    Singles(),
    Programs(),
    Sized(),
    Gradients(),
    Indexing(),
    Layouts(),
    Interchange(),
    Archives(),
    Subscripts(),
    Processes(),
    Plugins(),
    Views(),
    Objects(),
)
AREAS: dict[str, Area] = {area.name: area for area in _ALL}

PLANTED: dict[str, Area] = {"planted": Planted()}
"""Tests of the campaign itself ask for it; no campaign chooses it."""
