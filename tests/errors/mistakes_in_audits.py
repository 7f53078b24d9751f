"""`dpaa audit`: checks, logs, lists and files."""

from __future__ import annotations

from tests.errors.mistake import Mistake

LISTS = "user_id,item_id,rank\nu0,i3,1\nu0,i4,2\nu1,i0,1\n"


def check(kind: str, expression: str, *says: str) -> Mistake:
    return Mistake(kind, f'dpaa audit log.csv --fail-if "{expression}"', says)


def audit(kind: str, options: str, *says: str, lists: str = LISTS) -> Mistake:
    return Mistake(kind, f"dpaa audit {options}", says, {"lists.csv": lists})


CHECKS = [
    check(
        "a check on a number that does not exist", "headshare>0.8", "no number 'headshare'", "did you mean head_share@K"
    ),
    check("a check on nothing like a number there is", "accuracy>1", "no number 'accuracy'; there are log_users, "),
    check("a check on a name of two numbers", "head_share>0.8", "did you mean log_head_share or head_share@K"),
    audit(
        "a check on lists of another length",
        'log.csv --recs lists.csv --fail-if "head_share@20>0.8"',
        "no number 'head_share@20'; did you mean log_head_share or head_share@2?",
    ),
    check("a check without comparison", "gini", "'gini' is not NAME OP NUMBER", "log_head_share>0.8"),
    check("a check with one = only", "gini=1", "'gini=1' is not NAME OP NUMBER", "> >= < <= == !="),
    check("a check against text", "gini>high", "'gini>high' is not NAME OP NUMBER"),
    check("a check against nan", "gini>nan", "'gini>nan' is not NAME OP NUMBER"),
    check("a check that is code", "__import__('os')>1", "no number", "there are log_users, "),
    check("a check of two conditions", "gini>1 or gini<0", "is not NAME OP NUMBER"),
    check("an empty check", "", "'' is not NAME OP NUMBER"),
    check("a check on lists without lists", "coverage@20<0.1", "is measured only with --recs"),
]

AUDITED = [
    audit("an audit of what is not there", "clicks.csv", "there is no file clicks.csv"),
    audit("an audit of a folder that is no dataset", "diary", "diary is not a prepared dataset"),
    audit("an audit of a run", "run", "run is not a prepared dataset"),
    audit("a rule for positives with a prepared dataset", 'data --positive "rating>=3"', "data is prepared already"),
    audit("columns named for a prepared dataset", "data --user-column who", "go with a log; leave them out"),
    audit("an audit of a column that is not there", "log.csv --item-column song", "log.csv has no column 'song'"),
]

LISTED = [
    audit("audited lists that are not there", "log.csv --recs nowhere.csv", "there is no file nowhere.csv"),
    audit("lists cut where there are none", "log.csv --k 5", "k cuts recommended lists", "--recs"),
    audit("audited lists cut after no place", "log.csv --recs lists.csv --k 0", "k", "0"),
    audit("lists of another log", "numbers.csv --recs lists.csv", "lists.csv are text", "cast them"),
    audit(
        "lists whose known users have unknown items only",
        "log.csv --recs lists.csv",
        "no list of lists.csv has an item that the log knows",
        lists="user_id,item_id,rank\nu0,elsewhere,1\nsomebody,i0,1\n",
    ),
]

FILES = [
    audit(
        "an audit page that is not named as one",
        "log.csv --html page.pdf",
        "page.pdf has the ending '.pdf'; a page is written to .html",
    ),
    audit("an audit page where a folder is", "log.csv --html diary", "diary is a folder; name a file"),
]

SECTIONS = {"Audits": [*CHECKS, *AUDITED, *LISTED, *FILES]}
