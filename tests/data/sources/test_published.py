"""Published datasets: official counts, other files of their shape, what is wrong with a file."""

from pathlib import Path

import polars as pl
import pytest
from scripts import example_log

from dpaa.data.dataset import from_files
from dpaa.data.sources.published import TEST_FILE, TRAIN_FILE, coat, kuairec, yahoo_r3
from dpaa.data.sources.world import example_files, write_example
from dpaa.errors import InputError
from tests.command import dpaa_ok, run_dpaa

KUAIREC = "user_id,video_id,play_duration,video_duration,time,date,timestamp,watch_ratio\n"


def test_coat(real_data: Path) -> None:
    dataset = coat(real_data / "coat")
    assert (dataset.n_users, dataset.n_items) == (290, 300)
    assert (len(dataset.train), len(dataset.valid), len(dataset.test)) == (3_622, 621, 1_241)
    assert len(dataset.overlap("train", "valid")) + len(dataset.overlap("train", "test")) == 196
    assert dataset.describe()["popular"]["items"] == 163
    assert "3,338 rows of train.ascii are not positive (rating >= 3), 0 repeat a pair" in dataset.notes
    assert dataset.frame("train")["rating"].min() == 3
    assert coat(real_data / "coat", seed=1).fingerprint != dataset.fingerprint == coat(real_data / "coat").fingerprint


def test_other_files_of_the_shape(tmp_path: Path) -> None:
    for name, text in (("train.ascii", "5 0 3\n0 4 2\n"), ("test.ascii", "0 3 5\n4 0 1\n")):
        (tmp_path / name).write_text(text)
    dataset = coat(tmp_path, check=False)
    assert dataset.frame("train").rows() == [(0, 0, 5), (0, 2, 3), (1, 1, 4)]
    assert (len(dataset.valid), len(dataset.test)) == (1, 2)
    assert any("where the published file has 290 users" in note for note in dataset.notes)
    big = "1,7,1,1,t,20200705,5.0,2.5\n1,8,1,1,t,20200705,6.0,2.0\n2,9,1,1,t,20200705,7.0,3\n"
    small = "1,7,1,1,,20200705.0,,2.5\n1,9,1,1,t,20200705.0,6.0,4\n2,7,1,1,t,20200705.0,7.0,5\n"
    (tmp_path / "big_matrix.csv").write_text(KUAIREC + big)
    (tmp_path / "small_matrix.csv").write_text(KUAIREC + small)
    dataset = kuairec(tmp_path, check=False)
    assert dataset.frame("train").rows() == [(1, 7, 2.5, 5.0), (2, 9, 3.0, 7.0)]  # 2.0 is not above 2
    assert dataset.item_ids.to_list() == [7, 9]
    assert (len(dataset.valid), len(dataset.test)) == (1, 2)
    (tmp_path / TRAIN_FILE).write_text("1\t1\t5\n2\t2\t1\n1\t3\t4\n")
    (tmp_path / TEST_FILE).write_text("1\t4\t5\n2\t4\t5\n")
    dataset = yahoo_r3(tmp_path, check=False)
    assert dataset.frame("test").select("user_id", "item_id").rows() == [(1, 4)]  # user 2 has no training positive


def test_formats_can_be_mixed(tmp_path: Path) -> None:
    train, valid, test = tmp_path / "a.csv", tmp_path / "b.txt", tmp_path / "c.parquet"
    train.write_text("user,item\n1,10\n1,10\n2,20\n")
    valid.write_text("1 20\n")
    pl.DataFrame({"uid": [2, 3], "item": [10, 30]}).write_parquet(test)
    (tmp_path / "items.txt").write_text("10\n20\n40\n")
    dataset = from_files(train, valid, test, tmp_path / "items.txt", name="mixed", keep_duplicates=True)
    assert dataset.item_ids.to_list() == [10, 20, 30, 40]
    assert dataset.item_ids.gather(dataset.candidates).to_list() == [10, 20, 40]
    assert dataset.train.count.tolist() == [2, 1]
    assert dataset.valid.count is None


def test_coat_paper_split(real_data: Path) -> None:
    folder = real_data / "coat-paper-split"
    dataset = from_files(folder / "train.txt", folder / "val.txt", folder / "test.txt")
    assert dataset.counts["splits"] == {
        "train": {"pairs": 3_622, "users": 290, "items": 299},
        "valid": {"pairs": 617, "users": 261, "items": 250},
        "test": {"pairs": 1_245, "users": 281, "items": 288},
    }
    assert len(dataset.overlap("train", "test")) == 129


def test_kuairec_paper_split(real_data: Path) -> None:
    folder = real_data / "kuairec" / "paper-split"
    dataset = from_files(folder / "valid.txt", test=folder / "test.txt")
    assert (len(dataset.train), len(dataset.test)) == (71_535, 145_181)
    assert (dataset.n_users, dataset.n_items) == (1_410, 3_275)
    assert len(dataset.overlap("train", "test")) == 0


def test_it_is_what_the_script_makes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(example_log, "FOLDER", tmp_path / "example")
    example_log.main()
    committed = Path(example_log.__file__).parents[1] / "src" / "dpaa" / "data" / "example"
    assert (tmp_path / "example" / "titles.csv").read_bytes() == (committed / "titles.csv").read_bytes()
    monkeypatch.setattr(
        "dpaa.data.sources.world.resources.files", lambda _: tmp_path
    )  # gzip's bytes may differ between versions of zlib; what is packed may not
    made = example_files()
    monkeypatch.undo()
    assert made == example_files()


def test_the_command_writes_files_that_the_next_one_reads(tmp_path: Path) -> None:
    said = dpaa_ok("data", "example", "--out", tmp_path / "shop")
    assert f"dpaa audit {tmp_path / 'shop' / 'clicks.csv'}" in said.out.replace("\n", "")
    dpaa_ok("data", "log", tmp_path / "shop" / "clicks.csv", "--out", tmp_path / "data")
    titles = (tmp_path / "shop" / "titles.csv").read_text(encoding="utf-8").splitlines()
    assert titles[0] == "item_id,title"
    assert len({line.partition(",")[0] for line in titles}) == len(titles)


def test_what_is_there_stays(tmp_path: Path) -> None:
    write_example(tmp_path)
    (tmp_path / "clicks.csv").write_text("mine")
    said = run_dpaa("data", "example", "--out", tmp_path)
    assert said.code == 2
    assert "clicks.csv already exists; pass --overwrite" in " ".join(said.err.split())
    assert (tmp_path / "clicks.csv").read_text() == "mine"
    write_example(tmp_path, overwrite=True)
    assert (tmp_path / "clicks.csv").read_bytes() == example_files()["clicks.csv"]
    with pytest.raises(InputError, match="is a file"):
        write_example(tmp_path / "clicks.csv")
