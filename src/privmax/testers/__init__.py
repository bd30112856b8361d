"""An auditor that uses no law: it runs mechanisms, ours or anyone's, and looks at what comes out.

`check_privacy` tests a function on two data sets, `search_pairs` on many; `audit_subject` audits a
mechanism of a package, exactly where all courses of its randomness can be followed and by
statistical tests elsewhere. The other auditor, `privmax.audit`, compares laws and runs nothing.
"""

from privmax.testers.audits import Verdict, audit_subject
from privmax.testers.claims import Claim
from privmax.testers.search import Finding, check_privacy, search_pairs
from privmax.testers.subjects import Subject, subjects_of


def __dir__() -> list[str]:
    return __all__


__all__ = [
    "Claim",
    "Finding",
    "Subject",
    "Verdict",
    "audit_subject",
    "check_privacy",
    "search_pairs",
    "subjects_of",
]
