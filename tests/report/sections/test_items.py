from __future__ import annotations

from dpaa.report.sections import items
from tests.report.made import add_run, made_family, made_inputs
from tests.report.reader import Reader


def moved(page: Reader) -> list[list[str]]:
    """Rows of the tables: item, used, group, before, after, change."""
    cells = [tag.text for tag in page.tags if tag.name in ("th", "td") and "tbody" in tag.inside]
    return [cells[place : place + 6] for place in range(0, len(cells), 6)]


def test_against_the_log_an_item_is_due_its_share_of_it() -> None:
    family = made_family()
    add_run(family, "new", lists=["cd", "bd", "cd", "bc"])
    page = Reader(str(items.section(made_inputs(family)).content))
    assert [tag.text for tag in page.named("h3")] == ["new against the log"]
    assert moved(page) == [
        ["d", "1", "niche", "1", "3", "+2"],
        ["c", "1", "popular", "1", "3", "+2"],
        ["a", "4", "popular", "4", "0", "−4"],
    ]


def test_against_another_run_places_are_counted_in_both() -> None:
    family = made_family()
    add_run(family, "plain", lists=["cd", "bd", "cd", "bc"])
    add_run(family, "new", "item-knn", lists=["ce", "bd", "ce", "bc"])
    page = Reader(str(items.section(made_inputs(family)).content))
    assert [tag.text for tag in page.named("h3")] == ["plain against the log", "new against plain"]
    assert moved(page)[-2:] == [["e", "0", "niche", "0", "2", "+2"], ["d", "1", "niche", "3", "1", "−2"]]
    assert "places in the lists of 2 of all 4 users; before = plain, after = new" in page.named("caption")[-1].text


def test_the_most_popular_items_have_tables_only_where_nothing_else_has() -> None:
    family = made_family()
    popular = add_run(family, "popular", "most-popular")
    assert "popular against the log" in items.section(made_inputs(family)).content
    add_run(family, "new", lists=["cd", "bd", "cd", "bc"])
    assert family.reference(family.runs[1]) is popular
    found = items.section(made_inputs(family)).content
    assert "popular against the log" not in found
    assert "new against the log" in found
