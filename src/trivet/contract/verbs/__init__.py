"""The table of verbs. Each is a request (its parameters) under a declaration (right, addresses, tool, body).

The surfaces show the verbs in the order in which they are declared, so the modules are read in this one.
"""

from trivet.contract.verbs.memories import *  # noqa: F403, I001 - the order is that of the table
from trivet.contract.verbs.memories import *  # noqa: F403
from trivet.contract.verbs.memories import *  # noqa: F403
from trivet.contract.verbs.sharing import *  # noqa: F403
from trivet.contract.verbs.sharing import *  # noqa: F403
from trivet.contract.verbs.browse import *  # noqa: F403
from trivet.contract.verbs.browse import *  # noqa: F403
from trivet.contract.verbs.browse import *  # noqa: F403
from trivet.contract.verbs.administration import *  # noqa: F403
from trivet.contract.verbs.administration import *  # noqa: F403
