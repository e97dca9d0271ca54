import pytest

from hardlook.similarity.graph_measures import path_matrix
from hardlook.similarity.label_sets import load_label_set
from hardlook.similarity.labels import Label
from hardlook.similarity.sense_mapping import describe_candidate, find_candidates, format_mapping, restore_choices
from hardlook.similarity.wordnet.nouns import load_nouns


@pytest.fixture(scope="module")
def nouns():
    return load_nouns()


@pytest.fixture(scope="module")
def questions(nouns):
    names = ("crane", "forklift", "wheel loader", "zzqx")
    labels = [*(Label(i, name) for i, name in enumerate(names)), Label(4, "dog", synset="dog.n.01")]
    return {question.label.name: question for question in find_candidates(labels, nouns)}


def test_states(questions):
    states = {name: question.state for name, question in questions.items()}
    expected = {"crane": "choose", "forklift": "proposed", "wheel loader": "choose", "zzqx": "absent", "dog": "chosen"}
    assert states == expected


def test_nothing_is_chosen_for_a_name_with_several_senses(questions):
    for name in ("crane", "wheel loader", "zzqx"):
        assert questions[name].label.synset is None and questions[name].label.hypernym is None
    assert questions["forklift"].label.proposed and not questions["dog"].label.proposed


def test_last_words_are_hypernyms_at_most(questions):
    assert all(candidate.as_hypernym for candidate in questions["wheel loader"].candidates)
    assert "loader" in questions["wheel loader"].candidates[0].sense.lemmas
    assert not any(candidate.as_hypernym for candidate in questions["crane"].candidates)


def test_neighbours_are_the_nearest_settled_labels(questions, nouns):
    settled = {"forklift": "forklift.n.01", "dog": "dog.n.01"}
    for candidate in questions["crane"].candidates:
        nodes = [candidate.sense.index, *map(nouns.index, settled.values())]
        similar = dict(zip(settled, path_matrix(nouns.graph, nodes)[0, 1:], strict=True))
        assert dict(candidate.neighbours) == pytest.approx(similar)
        values = [value for _, value in candidate.neighbours]
        assert values == sorted(values, reverse=True)


def test_the_sense_that_most_words_share_comes_first(nouns):
    toilet = Label(0, "toilet", ("can", "commode", "pot", "throne"))
    (question,) = find_candidates([toilet], nouns)
    assert question.candidates[0].sense.name == "toilet.n.02"
    assert question.state == "choose" and question.label.synset is None


def test_the_table_reads_back_and_keeps_its_choices(questions, nouns, tmp_path):
    path = tmp_path / "table.csv"
    path.write_text(format_mapping(questions.values()), encoding="utf-8")
    labels = load_label_set(path, nouns=nouns)
    assert labels.labels == tuple(question.label for question in questions.values())
    again = format_mapping(find_candidates(labels, nouns))
    assert again == path.read_text(encoding="utf-8")


def test_an_edited_row_is_a_choice(questions, nouns, tmp_path):
    path = tmp_path / "table.csv"
    edited = format_mapping(questions.values()).replace("0,,crane,,,,,choose", "0,,crane,,,crane.n.04,,choose")
    path.write_text(edited, encoding="utf-8")
    (crane, *_) = find_candidates(load_label_set(path, nouns=nouns), nouns)
    assert (crane.state, crane.label.synset, crane.label.proposed) == ("chosen", "crane.n.04", False)
    kept = restore_choices([Label(9, "crane"), Label(10, "new")], load_label_set(path, nouns=nouns))
    assert (kept[0].id, kept[0].synset, kept[1].synset) == (9, "crane.n.04", None)


def test_a_candidate_in_one_line(questions):
    line = describe_candidate(questions["crane"].candidates[3])
    assert line.startswith("crane.n.04: lifts and moves heavy objects;")
    assert "used 0 times; near forklift .12" in line
    assert describe_candidate(questions["wheel loader"].candidates[0]).startswith("hypernym ")
