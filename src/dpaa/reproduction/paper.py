"""The numbers of the DPAA paper (Islam et al., 2026), to stand beside ours."""

from __future__ import annotations

METHODS = ("dpaa", "apda", "navip", "dap", "ppac", "macr", "cvib", "ips", "sam-reg", "lightgcn")
BASELINES = METHODS[1:]
"""What its "Improvement" is measured against."""

Row = tuple[float, ...]


def _rows(text: str) -> dict[str, Row]:
    """Lines of a name, which ends before the first number, and numbers."""
    split = ((line[: line.index(".")].strip(), line[line.index(".") :].split()) for line in text.strip().splitlines())
    return {name: tuple(float(number) for number in numbers) for name, numbers in split}


def _by_dataset(text: str) -> dict[str, dict[str, Row]]:
    """Lines of a method and as many numbers for each dataset."""
    found: dict[str, dict[str, Row]] = {}
    for method, numbers in _rows(text).items():
        width = len(numbers) // len(DATASETS)
        for place, name in enumerate(DATASETS):
            found.setdefault(name, {})[method] = numbers[place * width : (place + 1) * width]
    return found


DATASETS = {
    "coat": (290, 300, 5_490, 0.06310),
    "kuairec": (7_176, 10_728, 1_153_106, 0.01498),
    "yahoo-r3": (14_382, 1_000, 129_748, 0.00902),
}
"""Users, items, interactions, density."""

OVERALL = _by_dataset("""
dpaa      .2557 .2041 .6192   .0346 .0588 .6213   .1482 .0660 .2218
apda      .1587 .0745 .4626   .0113 .0113 .1082   .1414 .0644 .2111
navip     .1255 .0635 .3808   .0016 .0090 .1128   .1452 .0645 .2175
dap       .1374 .0742 .4306   .0222 .0120 .1858   .1423 .0640 .2157
ppac      .1565 .0759 .4626   .0313 .0474 .3340   .1449 .0641 .2142
macr      .1002 .0451 .3345   .0039 .0041 .0816   .0095 .0033 .0190
cvib      .2301 .1880 .5867   .0116 .0134 .1106   .1435 .0643 .2127
ips       .2107 .1905 .5658   .0009 .0060 .0575   .1300 .0578 .1972
sam-reg   .1874 .1488 .5124   .0015 .0086 .0830   .1229 .0551 .1859
lightgcn  .1301 .0715 .4093   .0039 .0029 .0487   .1411 .0628 .2134
""")
"""Recall, NDCG and hit ratio @20 on each dataset."""
OVERALL_METRICS = ("recall@20", "ndcg@20", "hit@20")

GROUPS = _by_dataset("""
dpaa      .3274 .2288 .1202 .0917   .0360 .0601 .0002 .0003   .2467 .1064 .0191 .0065
apda      .2097 .0935 .0057 .0019   .0128 .0098 .0000 .0000   .2329 .1038 .0155 .0057
navip     .1761 .0818 .0166 .0053   .0017 .0064 .0000 .0000   .2383 .1038 .0185 .0064
dap       .1822 .0870 .0284 .0090   .0256 .0134 .0001 .0001   .1982 .0864 .0184 .0060
ppac      .1779 .0918 .0523 .0223   .0331 .0477 .0000 .0000   .2361 .1016 .0152 .0059
macr      .1141 .0469 .0555 .0202   .0045 .0048 .0000 .0000   .0003 .0001 .0183 .0059
cvib      .2975 .2102 .1093 .0828   .0274 .0299 .0000 .0000   .2372 .1043 .0134 .0057
ips       .2643 .2057 .1098 .0901   .0012 .0059 .0000 .0000   .2120 .0923 .0180 .0058
sam-reg   .2242 .1518 .1093 .0792   .0018 .0086 .0001 .0001   .2096 .0904 .0066 .0027
lightgcn  .1905 .0939 .0010 .0005   .0042 .0027 .0000 .0000   .2341 .1017 .0101 .0044
""")
"""Recall and NDCG @20 on popular items, then on niche items, on each dataset."""
GROUP_METRICS = ("recall@20/popular", "ndcg@20/popular", "recall@20/niche", "ndcg@20/niche")

SEVERITY = _rows("""
dpaa      .2047 .2043 .1859 .1703 .1500 .1210 .1008 .0958 .0879 .0780
apda      .1740 .2001 .1763 .1453 .1146 .1148 .0853 .0951 .0785 .0633
navip     .1557 .1941 .1613 .0920 .0574 .0367 .0317 .0274 .0233 .0186
dap       .1738 .2049 .1769 .1325 .0798 .0497 .0389 .0298 .0286 .0216
ppac      .2025 .1949 .1810 .1550 .1017 .0759 .0567 .0510 .0428 .0373
macr      .1213 .0989 .1186 .0944 .0037 .0083 .0083 .0080 .0080 .0073
cvib      .1127 .1762 .1663 .1373 .0558 .0324 .0226 .0179 .0121 .0098
ips       .0987 .1691 .1210 .0509 .0314 .0226 .0234 .0190 .0136 .0111
sam-reg   .0956 .1597 .1722 .1600 .0461 .0211 .0179 .0114 .0076 .0078
lightgcn  .2024 .2001 .1824 .1656 .1215 .0804 .0477 .0400 .0349 .0278
""")
"""Recall@20 at severity 0..9."""

ABLATION = _rows("""
DPAA      .2040 .2025 .1843 .1698 .1520 .1220 .0999 .0959 .0909 .0784
γ0        .2021 .2039 .1841 .1650 .1372 .1202 .1005 .0947 .0838 .0748
w/o c     .2007 .2017 .1833 .1685 .1451 .1228 .0981 .0905 .0745 .0623
γ0 w/o c  .1848 .1994 .1808 .1533 .1232 .1168 .0988 .0950 .0824 .0652
w/o m     .2005 .2021 .1829 .1682 .1436 .1183 .0925 .0970 .0766 .0660
γ0 w/o m  .1727 .1990 .1759 .1503 .1168 .1165 .0870 .0923 .0763 .0675
w/o IIW   .2043 .2019 .1829 .1695 .1528 .1165 .0846 .0791 .0648 .0617
w/o LW    .2036 .2024 .1836 .1693 .1524 .1165 .0867 .0791 .0648 .0617
""")
"""Recall@20 at severity 0..9 by variant: γ0 = weights at all layers, c / m = current / pre-trained estimate."""

BEST_SETTINGS = {"coat": (1e-4, 2.0, 0.2), "kuairec": (1e-3, 3.0, 0.2), "yahoo-r3": (0.0, 0.0, 0.6)}
"""C, η and δ of its DPAA."""


def row_of(label: str) -> str | None:
    """The paper's row that a row of ours stands beside: that of the method, DPAA's for both readings of it.

    A row with settings of its own stands beside it too if they are such as the paper tuned; an ablation does not.
    """
    name, *settings = label.split()
    tuned = ("half_trust_shift", "layer_emphasis", "initial_residual", "interaction_strength_from", "learning_rate")
    if any(setting.partition("=")[0] not in tuned for setting in settings):
        return None
    plain = name.removesuffix("-as-printed")
    return plain if plain in METHODS else None


def at_severity(values: Row | None, severity: float) -> float | None:
    """The value at a severity, where the paper has that one."""
    known = values and float(severity).is_integer() and 0 <= severity < len(values)
    return values[int(severity)] if values and known else None
