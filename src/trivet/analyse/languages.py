"""Detection of a text's language by function words and letters; in doubt, English.

Confusing two foreign languages costs little, because queries try every language of the store.
English text, with its names and code, must not be taken for another language.

The lists are selected from Snowball's (BSD), plus question words and auxiliaries. They are not
indexed, except words that change a statement (not, never, without, only, before, after).
"""

from __future__ import annotations

from collections.abc import Sequence

# English function words, folded and without apostrophes. They include question words: in "when did
# she move" only "move" tells memories apart. On conversations these about 180 words gain six points
# of lexical recall@5 over a list of 33.
STOP_WORDS: frozenset[str] = frozenset(
    """
    a an the this that these those
    i me my mine myself we us our ours ourselves you your yours yourself yourselves
    he him his himself she her hers herself it its itself they them their theirs themselves
    what which who whom whose when where why how
    am is are was were be been being have has had having do does did doing done
    will would shall should can could may might must ought cannot
    and but or nor if because as until while of at by for with about against between into through
    during before after
    above below to from up down in out on off over under again further then once here there
    all any both each few more most other some such no not only own same so than too very just also
    now ever
    s t d ll m re ve o y
    im youre hes shes theyre weve youve ive theyve id youd hed shed wed theyd ill youll hell shell
    theyll
    dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt wont wouldnt shant shouldnt cant
    couldnt mustnt
    mightnt neednt aint lets thats whats whos hows wheres heres theres
    whether though although since upon within without via per
    """.split()
)

# Words after the bar change what a sentence says: they reveal the language too, but are indexed.
# Languages are ordered by number of writers; on a tie the first wins.
FUNCTION_WORDS: dict[str, str] = {
    "spanish": """
        a al algo algunas algunos ante aquel aquella aunque cada como cómo con contra cual cuál
        cuáles cuando cuándo cuánta cuántas cuánto cuántos de debe debo del desde donde dónde
        durante e el él ella ellas ellos en entre era eran eres es esa esas ese eso esos esta está
        están estaba estamos estar estas este esto estos estoy fue fueron ha había haber hace hacer
        hacia han has hay he hemos la las le les lo los más me mi mí mis mucho mucha muchos muy nos
        nosotras nosotros nuestra nuestras nuestro nuestros o os otra otras otro otros para pero por
        porque puede pueden pues que qué quien quién quienes quiénes se sea ser será si sí sido
        sobre sois somos son soy su sus suya suyo también tanto te tenemos tener tengo ti tiene
        tienen toda todas todo todos tu tú tus un una unas uno unos usted ustedes va vamos van
        vosotros vuestra vuestro y ya yo tenía cuyo
        | no nunca jamás ningún ninguna nada nadie sin solo sólo antes después hasta
    """,
    "portuguese": """
        a ao aos aquela aquele aqueles aquilo as até à às com como da das de dela dele deles do dos
        e é ela elas ele eles em entre era eram essa essas esse esses esta está estamos estão estas
        estava estavam este estes estou eu foi foram fosse há isso isto já lhe lhes mais mas me
        mesmo meu meus minha minhas muito muita na nas no nos nós nossa nossas nosso nossos num numa
        o onde os ou para pela pelas pelo pelos pode podem por porque porquê qual quais quando
        quanta quantas quanto quantos que quê quem são se seja ser será seu seus sua suas só sobre
        sou também te tem têm temos tenho ter teu tinha tu tua tudo um uma uns umas vai vão você
        vocês vos fica deve
        | não nunca jamais nenhum nenhuma nada sem apenas antes depois nem
    """,
    "french": """
        à ai aie ait as au aura aurait aussi autre autres aux avaient avait avec avez avons a afin
        alors c ça car ce ceci cela celle celui ces cet cette ceux chaque chez combien comme comment
        d dans de depuis des dois doit donc dont du elle elles en entre es est et étaient était
        étant été être eu eux fait faire faut fut il ils j je l la là laquelle le lequel les leur
        leurs lors lui m ma mais me même mes moi mon n ni nos notre nous on ont où ou par parce peu
        peut peux plus pour pourquoi puis qu quand que quel quelle quelles quels qui quoi s sa se
        sera serait ses si soi soit son sont suis sur t ta te tes toi ton tous tout toute toutes
        très tu un une vers vos votre vous y quelque quelques vont va
        | pas ne jamais aucun aucune rien sans seulement avant après jusqu non
    """,
    "german": """
        aber alle allem allen aller alles als also am an andere anderem anderen anderer anderes auch
        auf aus bei beim bin bist da dabei damit dann daran das dass daß dazu dein deine deinem
        deinen deiner dem den denn der deren des dessen dich die dies diese diesem diesen dieser
        dieses dir doch dort du durch dürfen ein eine einem einen einer eines er es etwas euch euer
        eure für fuer gegen gewesen gibt hab habe haben hast hat hatte hatten hier hin ich ihm ihn
        ihnen ihr ihre ihrem ihren ihrer ihres im in indem ins ist ja jede jedem jeden jeder jedes
        jetzt kann können könnte man mein meine meinem meinen meiner meines mich mir mit muss müssen
        nun ob oder sehr sein seine seinem seinen seiner seines seit selbst sich sie sind so soll
        sollen sollte sondern über ueber um und uns unser unsere unserem unseren unserer unter vom
        von während wann war waren warum was weil welche welchem welchen welcher welches wem wen
        wenn wer werde werden wessen wie wieder wieviel will wir wird wirst wo wofür woher wohin
        wollen womit wurde wurden würde würden zu zum zur zwischen
        | nicht nichts kein keine keinem keinen keiner keines nie niemals nur ohne vor vorher nach
        nachdem bis noch
    """,
    "russian": """
        и в во что он на я с со как а то все всё она так его но да ты к у же вы за бы по ее её мне
        было вот от меня еще ещё о из ему теперь когда даже ну ли если уже или быть был него вас вам
        ведь там потом себя ей они тут где есть ней для мы тебя их чем была сам чтоб чего тоже себе
        под будет тогда кто этот того потому этого какой ним здесь этом мой тем чтобы нее были куда
        зачем почему сколько какая какие каком какую всех можно при об над тот через эти нас нам про
        всего них эту моя свою этой такой им всю между это эта наш наша наши мои моё мое нужно надо
        | не нет ни никогда ничего без только до после перед
    """,
    "italian": """
        a abbiamo ad ai agli al alla alle allo anche avere aveva avevano c che chi ci come con cosa
        cui d da dagli dai dal dalla dalle dallo degli dei del della delle dello deve devo di dov
        dove due e è ed era erano essere fa fare gli ha hai hanno ho i il in io l la le lei li lo
        loro lui ma mentre mi mia mie miei mio ne negli nei nel nella nelle nello noi nostra nostre
        nostri nostro o ogni per perché poi più può qual quale quali quando quanta quante quanti
        quanto quella quelle quelli quello questa queste questi questo sarà se sei si sia siamo sono
        sta stata stato su sua sue sugli sui sul sulla sulle suo suoi te ti tra tu tua tue tuo tuoi
        tutte tutti tutto un una uno va vi voi vostra vostro all dall dell nell sull quest
        | non mai nessun nessuna nessuno niente senza solo prima dopo fino
    """,
    "turkish": """
        acaba ama ancak ben bana bende benim beni bir biz bize bizim bu buna bunda bundan bunlar
        bunu bunun burada çok çünkü da daha de diye eğer en gibi hangi hem hep her ile ise için kaç
        kadar kim kime kimin ki mı mi mu mü ne neden nedir nerede nereden nereye nasıl niçin niye o
        olan olarak olduğu on ona ondan onlar onların onu onun oldu olur sana sen senin siz sizin
        şey şu tüm var ve veya ya yani şimdi
        | değil yok asla hiç sadece önce sonra
    """,
    "polish": """
        a aby albo ale bo być będą będzie był była było były by chce co coś czy czyli czego dla do
        dlaczego gdy gdzie go i ich ile im ja jak jaka jakie jaki jako jego jej jest jestem jesteśmy
        jeśli już każdy kiedy kim kto która które którego której który których którym ma mam mamy
        mają mi mnie moja moje może mój można mu my na nad nas nasz nasza nasze o od on ona one oni
        oraz pod przez przy są się skąd sobie swoje ta tak także tam te tego tej ten też to tu ty
        tych tym u w we wszystkie wszystko z za ze że
        | nie nigdy nic żaden bez tylko przed po
    """,
    "dutch": """
        aan al alles als altijd andere ben bij daar dan dat de der deze die dit doen door dus een
        eens en er ge haar had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je
        jij jullie kan kon kunnen maar me meer men met mij mijn moet moeten na naar nog nu of om
        omdat onder ons onze ook op over te tegen toch toen tot u uit uw van veel waar waarom
        wanneer want waren was wat we welk welke werd wie wij wil worden wordt zal ze zelf zich zij
        zijn zo zou zouden bent hoeveel heet
        | niet geen nooit niets niemand zonder alleen voor voordat nadat
    """,
    "romanian": """
        a acest această aceasta acesta aceste acestea aceștia al ale am ar are aș așa ați au avea
        avem aveți ca când care căreia cărui ce cea cei cele cel cine cât câte câți cu cum da dacă
        de deci din dintre e ea ei el ele era este eu fi fie fost i iar il îi îl în îmi între își
        îți la le li lor lui mai mea mei meu mi ne noastră nostru o ori pe pentru prin sa să sale
        său se si și sunt sunteți suntem te tot toate toți tu un una unde unei unui unor va vă vom
        vor asta fiecare trebuie
        | nu niciodată nimic fără doar înainte după
    """,
    "greek": """
        ο η το οι τα του της των τον την τους τις στο στη στην στον στα στις στους και κι σε με για
        από ως που πού πως πώς ποιος ποια ποιο ποιοι ποιες τι πότε πόσο πόσα πόσες γιατί είναι ήταν
        είμαι είμαστε είσαι έχει έχω έχουμε έχουν είχε θα να αν ότι ή αλλά αυτό αυτή αυτός αυτά
        αυτές αυτοί ένα ένας μια μία μου σου μας σας όπως όταν ενώ κάθε πρέπει επίσης κατά προς
        | δεν μην όχι ποτέ χωρίς μόνο πριν μετά
    """,
    "swedish": """
        alla allt att av bli blir blev blivit de dem den denna deras dess dessa det detta dig din
        dina ditt du där då eller en er era ert ett från för ha hade han hans har henne hennes hon
        honom hur här i ingen jag ju kan kommer kunde man med mellan men mig min mina mitt mot
        mycket ni nu när någon något några och om oss på samma sedan sig sin sina sitt själv ska
        skall skulle som så sådan till under upp ut vad var vara varför varit varje vars vart vem vi
        vid vilka vilken vilket vår våra vårt än är åt över hos måste också finns
        | inte aldrig inga inget utan bara endast före innan efter
    """,
    "hungarian": """
        a az egy és is s hogy ez ezt ezek ezen ezzel ezért ebben ehhez ennek erre azt azok azon
        azzal azért abban ahhoz annak arra arról ahogy ahol aki akik akit akinek akkor alatt által
        amely amelyek amelyet ami amit amikor amíg át bár be benne de el ellen én engem fel felé ha
        hanem hát hiszen hol honnan hova hová hogyan hány hányan hányas igen így illetve ilyen itt
        jön ki kié kit kinek kivel kell kellett között közül lehet legyen lenne lenni lesz lett le
        ma maga majd már más meg még mellett melyik melyek mely mennyi mennyit mert mi mit miért
        milyen mikor mikorra minden mindent mindig mint mivel most nagyon nekem neki nekünk nálunk
        olyan ott össze ő ők őket őt pedig rá saját sok szerint talán tehát te ti több tovább úgy
        ugyanis van vannak vagy vagyok vagyunk vele velem volna volt voltak voltam voltunk viszont
        vissza ahova ahonnan miről mire mibe miben miből ide oda tud tudja lakik
        | nem ne sem sincs nincs nincsenek soha semmi senki nélkül csak előtt előtte után utána
        mielőtt miután
    """,
    "czech": """
        a aby ale ani asi az až být bude budu budou by byl byla bylo byli co což či do ho i já jak
        jako jaká jaké jaký je jeho jej její jejich jsem jsi jsme jsou jste k kam kde kdo kdy kdyby
        když která které který kteří kolik ke má máme mám mají mě mezi mi mne mnou moje můj na nad
        nám naše náš o od on ona oni ono pak po pod podle pokud pro proč proto protože při s se si
        ta tak také takže tam tato ten tento to toho tohoto tom tomu tu ty u už v vám vaše váš ve
        však všechno všech vy z za ze že nás
        | ne není nejsou nikdy nic žádný bez jen pouze před předtím nemá nebo
    """,
    "norwegian": """
        alle at av ble bli blir blitt da de deg dei dem den denne der dere deres det dette din disse
        ditt du då eg ein eit eller en enn er et ett for fordi fra ha hadde han hans har henne
        hennes her ho hun hva hvem hver hvilke hvilken hvilket hvis hvor hvordan hvorfor i inn jeg
        kan korleis kva kunne man mange med meg men mellom min mine mitt mot mykje må mye når nå noe
        noen og også om opp oss over på samme seg selv si siden sin sine sitt skal skulle slik som
        så til ut var ved vi vil ville vår være vært våre å både får
        | ikke ikkje aldri ingen uten bare kun før etter
    """,
    "danish": """
        ad af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din
        disse dog du eller en end er et for fra ham han hans har havde have hende hendes her hos hun
        hvad hvem hvilken hvilket hvor hvordan hvorfor hvornår hvis i ind jeg jer jo kan kunne man
        mange med meget men mig min mine mit mod må når nogle noget nogen nu og også om op os over
        på sig selv sin sine sit skal skulle som sådan til ud under var vi vil ville vor være været
        ved så får hvilke dine dit lige vores
        | ikke aldrig ingen intet uden kun før efter indtil
    """,
    "finnish": """
        ja on oli ovat olla olen olet ole olemme olivat olisi ollut olleet että se sen sitä siinä
        siitä siihen sillä ne niiden niitä tämä tämän tätä tässä tästä tähän tällä nämä tuo tuon
        minä minun minut minua minulla minulle sinä sinun sinua sinulla hän hänen häntä hänellä
        hänelle me meidän meitä meillä meille te teidän teillä he heidän heitä heillä joka jonka
        jota jossa josta johon jotka joiden joita kuka kenen ketä kenellä mikä minkä mitä missä
        mistä mihin millä miksi milloin miten mitkä kuinka paljonko jos joten koska kuin kun mutta
        myös niin sekä tai vaan vai vaikka kanssa mukaan noin yli nyt itse jo vielä sitten kaikki
        voi pitää täytyy
        | ei en et emme ette eivät ilman vain ennen jälkeen
    """,
}

# Listed words that more than one in 1,000 English texts contains, as words, abbreviations, first
# names or names in code. They are dropped from texts in their language but do not reveal it.
ENGLISH_TOO: frozenset[str] = STOP_WORDS | frozenset(
    """
    a ad ai al alla alle allen alt ami ar art au aura aux ben bin biz bo bu c ca car care ci co col
    com come comment contra cum dan dell det die dig din dir do dog door dove due e ed el em en end
    era es fare fi go ha ham han hans hat hay hem ho hon hun i ill inn ins io j ja jo k kan ki kim
    kit kon l li ma mai man mas me men met mi mia min mina mint mod mon mot mu n na ne ni nu num o
    ole on one ono op os oss pak per plus po pod pro proto quest re sa sale sana sea sedan sen si
    sia sig sin sit son su sue sui ta tai tam te ten ter ti til till tom ton tot tu tue ty u un v va
    var vars vid ville w want war we wen will y ya yo z ze
    """.split()
)

# Words in names and titles within English texts ("Rio de la Plata", "Das Boot ist voll"); two of
# them weigh as much as one other word.
IN_NAMES: frozenset[str] = frozenset(
    """
    che chi con da dal das de dei del della den der des di dies dos du ella elle et il la las le les
    los mir og os ou par para pas por que se sur são una und van von weil zu à
    """.split()
)


ENGLISH = "english"
LANGUAGES: tuple[str, ...] = tuple(FUNCTION_WORDS)
# Marks in the index for a memory that is not in English, and for its language; they tell a query
# which languages to search. No text has them, because a term starts with a letter or digit.
NOT_ENGLISH = ":foreign"

# The first words of a text are enough to determine its language.
MAX_QUERY_WORDS = 200
# The weight of one word for its language; words that are English too only separate foreign
# languages.
DISTINCTIVE_WORD, IN_A_NAME, LETTER, ENGLISH_WORD = 2.0, 1.0, 1.0, 0.5
# Minimum lead over English: one distinctive word, or two weaker signs. Its cost for English texts
# is in docs/decisions/0024-stem-in-the-language-of-the-text.md.
MIN_EVIDENCE = 2.0
# From here the text is surely not English; on a tie the first language wins.
SURE_EVIDENCE = 3.0
# Two words with foreign letters; more may be a list of names.
MAX_LETTER_EVIDENCE = 2.0

LETTERS: dict[str, frozenset[str]] = {
    "czech": frozenset("áčďéěíňóřšťúůýž"),
    "danish": frozenset("æøå"),
    "dutch": frozenset("ëïé"),
    "finnish": frozenset("äö"),
    "french": frozenset("àâçèéêëîïôùûœ"),
    "german": frozenset("äöüß"),
    "greek": frozenset("αβγδεζηθικλμνξοπρσςτυφχψωάέήίόύώϊϋΐΰ"),
    "hungarian": frozenset("áéíóöőúüű"),
    "italian": frozenset("àèéìòù"),
    "norwegian": frozenset("æøå"),
    "polish": frozenset("ąćęłńóśźż"),
    "portuguese": frozenset("ãõáâàçéêíóôú"),
    "romanian": frozenset("ăâîșțşţ"),
    "russian": frozenset("абвгдеёжзийклмнопрстуфхцчшщъыьэюя"),
    "spanish": frozenset("áéíñóúü"),
    "swedish": frozenset("åäö"),
    "turkish": frozenset("çğıöşü"),
}

_words = {
    language: frozenset(words.replace("|", " ").split())
    for language, words in FUNCTION_WORDS.items()
}
_telling = frozenset(word for words in _words.values() for word in words) - ENGLISH_TOO
# Checked before lowercasing, because most texts are English and contain none of them.
_telling_as_written = _telling | frozenset(word.capitalize() for word in _telling)
_languages_of_word: dict[str, tuple[str, ...]] = {}
for _language, _own_words in _words.items():
    for _word in _own_words & _telling:
        _languages_of_word[_word] = (*_languages_of_word.get(_word, ()), _language)
_letters = frozenset(letter for letters in LETTERS.values() for letter in letters)


def language_markers(language: str) -> tuple[str, ...]:
    """Return the extra terms that index a memory in this language."""
    return () if language == ENGLISH else (NOT_ENGLISH, mark(language))


def mark(language: str) -> str:
    return f":{language}"


def language_condition(language: str) -> tuple[str, bool]:
    """Return a mark, and whether memories in this language have it or lack it."""
    return (NOT_ENGLISH, False) if language == ENGLISH else (mark(language), True)


def language_of(tokens: Sequence[str], ascii: bool) -> str:
    """Return the language of a text, given its words as written."""
    looked_at = tokens if len(tokens) <= MAX_QUERY_WORDS else tokens[:MAX_QUERY_WORDS]
    # A capitalized word may be a name, and names keep their accents in English.
    strange = (
        set()
        if ascii
        else {token for token in looked_at if not token.isascii() and token.islower()}
    )
    if strange:
        strange = {token for token in strange if not _letters.isdisjoint(token)}
    if not strange and _telling_as_written.isdisjoint(looked_at):
        return ENGLISH
    # Words in capitals are abbreviations or code.
    return _likeliest({token.lower() for token in looked_at if not token.isupper()}, strange)


def _likeliest(words: set[str], strange: set[str]) -> str:
    weights = _weights(words & _telling, strange)
    likely = [language for language in LANGUAGES if weights[language] >= MIN_EVIDENCE]
    if not likely:
        return ENGLISH
    letters = _letters.intersection("".join(words))
    ranks = {language: _rank(language, weights[language], words, letters) for language in likely}
    best = max(likely, key=ranks.__getitem__)
    english = DISTINCTIVE_WORD * len((words & STOP_WORDS) - _words[best])
    undecided = (
        weights[best] < SURE_EVIDENCE and sum(rank == ranks[best] for rank in ranks.values()) > 1
    )
    return best if weights[best] >= MIN_EVIDENCE + english and not undecided else ENGLISH


def _weights(telling: set[str], strange: set[str]) -> dict[str, float]:
    weights = dict.fromkeys(LANGUAGES, 0.0)
    for word in telling:
        for language in _languages_of_word[word]:
            weights[language] += IN_A_NAME if word in IN_NAMES else DISTINCTIVE_WORD
    if strange:
        letters = {letter for word in strange for letter in word if letter > "\x7f"}
        for language, own in LETTERS.items():
            written = LETTER * sum(not own.isdisjoint(word) for word in strange - telling)
            weights[language] += min(MAX_LETTER_EVIDENCE, written) - DISTINCTIVE_WORD * len(
                letters - own
            )
    return weights


def _rank(language: str, weight: float, words: set[str], letters: frozenset[str]) -> float:
    shared = words & _words[language] & ENGLISH_TOO
    return weight + ENGLISH_WORD * len(shared) - LETTER * len(letters - LETTERS[language])
