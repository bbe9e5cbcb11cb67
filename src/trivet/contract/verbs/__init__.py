"""The table of verbs. Surfaces list them in declaration order, so the import order matters."""

from trivet.contract.verbs.memories import *  # noqa: F403, I001 - the order is that of the table
from trivet.contract.verbs.sharing import *  # noqa: F403
from trivet.contract.verbs.browse import *  # noqa: F403
from trivet.contract.verbs.administration import *  # noqa: F403
