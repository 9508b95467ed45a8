"""Law 10: no guarantee is below the exact value for linear losses.

With linear losses, Gaussian noise and no clip that depends on the noise, what an observer sees is Gaussian: mean(data)
+ M n with n ~ N(0, I), and M does not depend on the data. The columns of M are found by running the real engine with a
source of noise that returns unit vectors (`scripted`); that the run is affine is checked, not assumed. For two
neighbouring data sets the view is then exactly mu-GDP, where mu is the length of the shortest n with M n = d and d is
the difference of the means (infinite if there is none). A report below it is false, whatever theorem stands behind it.

python -m consenso.testing.exact_values [--changes 2] [--page docs/privacy.md] [algorithm ...]
"""

from consenso.testing.exact_values.compare import Comparison
from consenso.testing.exact_values.law import Examined, examine, no_value_below_exact

__all__ = ["Comparison", "Examined", "examine", "no_value_below_exact"]
