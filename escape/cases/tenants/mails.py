"""Class 112: mails that contain several mails, or imitate another sender."""

from lodger.escape.attack_files import cases_of
from lodger.escape.cases.tenants.data import SCRIPTS, refused

CASES = [*cases_of(__file__, checks={"refused": refused}, common=SCRIPTS)]
