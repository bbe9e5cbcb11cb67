"""Language detection and the index terms of each language."""

from __future__ import annotations

import pytest

from trivet.analyse import ENGLISH, LANGUAGES, analyse, language_of_text

# Sentences as people write them in memories and queries: short, with names, numbers and code.
FOREIGN: dict[str, tuple[str, ...]] = {
    "spanish": (
        "La reunión con el gestor es el martes a las cuatro.",
        "¿Dónde están las llaves de la furgoneta?",
        "Nunca despliegues un viernes por la tarde",
        "quién lleva los pedidos de Valencia",
    ),
    "portuguese": (
        "A chave da garagem está com a vizinha do terceiro andar.",
        "Quando é que a minha mãe faz anos?",
        "O servidor não aceita ligações depois das dez",
        "qual é a senha do wifi da loja",
    ),
    "french": (
        "Le plombier passe jeudi matin pour la chaudière.",
        "Où est rangée la clé du local ?",
        "On ne déploie jamais le vendredi",
        "combien coûte l'abonnement de la salle",
    ),
    "german": (
        "Die Rechnung an den Steuerberater geht jeden Monat raus.",
        "Wann wird die Heizung gewartet?",
        "Das Backup läuft auf dem Server `nas-02` um drei Uhr.",
        "wo liegt der Schlüssel für den Keller",
    ),
    "russian": (
        "Ключи от дачи лежат у соседки.",
        "Когда у мамы день рождения?",
        "Мы не выкладываем по пятницам",
    ),
    "italian": (
        "La riunione con il commercialista è stata spostata a giovedì.",
        "Dove sono le chiavi della cantina?",
        "Il figlio di Anna non mangia il pesce",
        "quanto costa l'affitto del negozio",
    ),
    "turkish": (
        "Toplantı salı günü saat üçte ve herkes için zorunlu.",
        "Anahtar nerede?",
        "Bu sunucu neden çok yavaş",
    ),
    "polish": (
        "Klucze do piwnicy są u sąsiadki.",
        "Kiedy jest spotkanie z księgową?",
        "Nie wdrażamy w piątek, bo nikt nie ma dyżuru",
    ),
    "dutch": (
        "De sleutel van het magazijn ligt bij de buren.",
        "Wanneer wordt de ketel nagekeken?",
        "Wij zetten op vrijdag niets live",
    ),
    "romanian": (
        "Cheile de la pivniță sunt la vecină.",
        "Când este ședința cu contabilul?",
        "Nu facem deploy vinerea",
    ),
    "greek": (
        "Τα κλειδιά είναι στη γειτόνισσα.",
        "Πότε είναι η συνάντηση με τον λογιστή;",
        "Δεν ανεβάζουμε την Παρασκευή",
    ),
    "swedish": (
        "Nyckeln till förrådet ligger hos grannen.",
        "När ska pannan servas?",
        "Vi driftsätter inte på fredagar",
    ),
    "hungarian": (
        "A pince kulcsa a szomszédnál van.",
        "Mikor van a megbeszélés a könyvelővel?",
        "Pénteken nem telepítünk semmit",
        "hol lakik Juli nagymamája",
    ),
    "czech": (
        "Klíče od sklepa jsou u sousedky.",
        "Kdy je schůzka s účetní?",
        "V pátek nikdy nenasazujeme",
    ),
    "finnish": (
        "Kellarin avain on naapurilla.",
        "Milloin on kokous?",
        "Emme julkaise perjantaisin mitään",
    ),
}
# This rule cannot distinguish written Danish from Norwegian; their stemmers hardly differ.
NORTHERN = (
    "Nøglen til kælderen ligger hos naboen.",
    "Vi lægger ikke noget ud om fredagen",
    "Når er møtet med regnskapsføreren?",
)
ENGLISH_TEXTS = (
    "Anselm leads the warehouse; his assistant is Dörte Amselfeld.",
    "Mies van der Rohe designed the chair in the lobby",
    "We met at Café de la Paix, near the Rue de Rivoli",
    "José and Zoë moved to São Paulo in May",
    "naïve approach, see the résumé in the façade module",
    "locales: en, de, es, fr, it, nl, pt, hu",
    "for (var i = 0; i < n; i++) { los.push(die[i]) }",
    "import os, sys; del os.environ['LA']",
    "SELECT man, war, hat FROM bin WHERE die = 'no'",
    "Los Angeles office", "El Niño forecast", "El Paso to La Jolla", "Las Vegas trip", "Da Vinci code",
    "van rental price", "die cast model", "Mon Tue Wed schedule", "comment on plus sales",
    "docker compose up -d --build", "E_CONN_4012 timeout", "nginx 502 on prod", "pip install -e .", "Tom met Ben",
    "per se", "et al. 2019", "ad hoc report", "pro and con", "art director Hans", "Don Quixote by Miguel de Cervantes",
    "Das Boot", "La La Land", "Les Misérables tickets", "Der Spiegel article", "Villa del Sol booking",
    "ämnen", "", "42", "数据库的端口是什么", "雲波文具の窓口は野々村さんです", "quillの日本語検索",
)  # fmt: skip


def test_at_most_one_in_15_foreign_sentences_is_missed() -> None:
    pairs = [(language, text) for language, texts in FOREIGN.items() for text in texts]
    wrong = [(language, text) for language, text in pairs if language_of_text(text) != language]
    assert len(wrong) <= len(pairs) / 15, wrong
    assert all(language_of_text(text) in ("danish", "norwegian") for text in NORTHERN)
    assert {*FOREIGN, "danish", "norwegian"} == set(LANGUAGES)


@pytest.mark.parametrize("text", ENGLISH_TEXTS)
def test_english_with_names_and_code_is_english(text: str) -> None:
    assert language_of_text(text) == ENGLISH


def test_english_index_terms() -> None:
    text = "Sanne's relays couldn't reach `src/app/getUserName.py` (E_CONN_4012), naïve retries; C++ at 東京大学."
    assert analyse(text) == (
        "sann", "relay", "reach", "src/app/getusername.py", "src", "app", "getusernam", "get", "user", "name", "py",
        "e_conn_4012", "e", "conn", "4012", "naiv", "retri", "c++", "c", "東", "京", "大", "学",
        "東京", "京大", "大学",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Die Wohnungen sind vermietet.", "Die Wohnung ist vermietet."),
        ("Wir haben die Müllabfuhr bezahlt.", "Wir haben die Muellabfuhr bezahlt."),
        ("Les réunions de l'équipe sont déplacées.", "La réunion de l'équipe est déplacée."),
        ("La hermana es alérgica a las nueces.", "Las hermanas son alérgicas a la nuez."),
        ("Hol vannak a kulcsok és a házak?", "Hol van a kulcs és a ház?"),
        ("Quand l'année est-elle finie ?", "Quand les années sont-elles finies ?"),
    ],
)
def test_inflected_forms_share_terms(one: str, other: str) -> None:
    held = set(analyse(other))
    assert sum(term in held for term in analyse(one)) >= 2, (analyse(one), analyse(other))


def test_word_without_accents_matches() -> None:
    assert set(analyse("nyaralo", "hungarian")) <= set(
        analyse("A nyaraló kulcsa a nagymamánál van.")
    )
    assert analyse("nyaralo", "hungarian") != analyse("nyaraló", "hungarian")[:1], (
        "otherwise this check proves nothing"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Wir deployen freitags.", "Wir deployen freitags nicht."),
        ("On déploie le vendredi.", "On ne déploie pas le vendredi."),
        ("Se despliega los viernes.", "No se despliega los viernes."),
        ("Pénteken telepítünk a szerverre.", "Pénteken nem telepítünk a szerverre."),
    ],
)
def test_negation_is_indexed(one: str, other: str) -> None:
    assert analyse(one) != analyse(other)
