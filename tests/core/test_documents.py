"""Which editor has what open."""

from pathlib import Path

from offload.core.documents import Document, Documents

ROOT = Path("/w")
FILE = ROOT / "a.py"


def put(documents, editor, text, path=FILE, version=1):
    documents.put(Document(editor, path, text, version))


def test_a_text_is_that_of_the_editor_that_asks_else_of_the_one_that_told_last():
    documents = Documents()
    assert documents.text(FILE, "one") is None
    put(documents, "one", "1")
    put(documents, "two", "2")
    assert documents.text(FILE, "one") == "1"
    assert documents.text(FILE, "two") == "2"
    assert documents.text(FILE) == documents.text(FILE, "three") == "2"
    put(documents, "one", "1, changed", version=2)
    assert documents.text(FILE) == "1, changed"
    assert documents.text(ROOT / "b.py") is None


def test_a_closed_document_is_forgotten():
    documents = Documents()
    put(documents, "one", "1")
    put(documents, "two", "2")
    documents.drop("two", FILE)
    documents.drop("two", FILE)
    assert documents.text(FILE, "two") == "1"


def test_a_file_that_an_editor_knows_by_another_name_is_found_by_both(tmp_path):
    root, other = tmp_path / "project", tmp_path / "link"
    root.mkdir()
    (root / "a.py").write_text("")
    (root / "same.py").symlink_to("a.py")
    other.symlink_to(root)
    documents = Documents(Path.resolve)
    put(documents, "one", "1", other / "a.py")
    put(documents, "two", "2", root / "same.py")
    one, two = Document("one", other / "a.py", "1", 1), Document("two", root / "same.py", "2", 1)
    assert documents.below(root) == {"a.py": (one, two), "same.py": (two,)}
    assert documents.below(other) == {"a.py": (one, two)}
    documents.drop("one", other / "a.py")
    documents.drop_editor("two")
    assert documents.below(root) == {}


def test_the_documents_of_an_editor_go_with_it():
    documents = Documents()
    put(documents, "one", "1")
    put(documents, "one", "1b", ROOT / "b.py")
    put(documents, "two", "2")
    documents.drop_editor("one")
    assert documents.below(ROOT) == {"a.py": (Document("two", FILE, "2", 1),)}


def test_documents_below_a_folder_are_named_from_there_and_the_last_one_told_stands_last():
    documents = Documents()
    put(documents, "one", "1")
    put(documents, "two", "2", version=None)
    put(documents, "one", "1c", ROOT / "sub" / "c.py")
    put(documents, "one", "else", Path("/w2/a.py"))
    put(documents, "one", "1, changed", version=2)
    assert documents.below(ROOT) == {
        "a.py": (Document("two", FILE, "2", None), Document("one", FILE, "1, changed", 2)),
        "sub/c.py": (Document("one", ROOT / "sub" / "c.py", "1c", 1),),
    }
