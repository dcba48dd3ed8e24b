"""Word lists of the generated data.  Own lists of ordinary words; pseudo-words come from syllables."""

NAMES = """Tom Anna Ben Lily Max Mia Sam Zoe Leo Eva Jack Rose Tim Sara Paul Nina Finn Ella Hugo Ida Otto Lena Carl Emma Noah Ruth
Alan Kate Mark Lucy Adam Jane Peter Clara David Helen Oscar Alice Simon Maria Bob Julia Eric Laura Frank Sophie Victor Irene
George Martha Henry Diana Walter Nora Felix Greta Bruno Vera Ralph Edith""".split()
ANIMALS = """cat dog fox bear rabbit mouse horse cow duck owl frog sheep goat lion tiger wolf pig hen bee fish turtle crow goose
donkey""".split()
PLACES = "forest garden river village farm hill lake barn market meadow house school bridge island valley castle kitchen mill".split()
THINGS = """ball book key hat lamp box rope cup bell map coin apple cake drum kite ring stone basket letter clock shoe spoon
blanket candle""".split()
COLORS = "red blue green yellow white black brown pink gray orange purple golden silver".split()
ADJECTIVES = "small big happy sad old young brave kind quick slow clever shy funny quiet proud tired hungry gentle".split()
CITIES = """Rome Paris London Berlin Madrid Vienna Tokyo Cairo Oslo Lima Delhi Athens Dublin Prague Boston Chicago Dallas Denver
Seattle Toronto Sydney Milan Lyon Geneva Munich Hamburg Porto Quito Seoul Hanoi Beijing Warsaw Lisbon Naples Havana Zurich
Miami Austin Atlanta Phoenix Houston Detroit Portland Venice Krakow Bergen Leeds Bristol Kyoto Osaka""".split() + [
    "New York", "San Francisco", "Los Angeles", "Mexico City", "Cape Town", "New Delhi"]
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
NUMBERS = "zero one two three four five six seven eight nine ten eleven twelve".split()
ROOMS = "kitchen bedroom hall bathroom office garage".split()

WORDS = """apple river stone cloud maple copper falcon harbor meadow winter summer autumn spring thunder garden castle dragon piano
violin guitar anchor bridge candle desert engine feather glacier hammer island jungle kitten ladder magnet needle ocean pepper
quartz rocket saddle temple umbrella valley window zebra basket button cactus dolphin eagle ginger honey ivory jacket kernel
lemon marble nickel olive parrot salmon tomato turtle velvet walnut acorn beacon comet dagger ember fable goblet hazel indigo
jasper koala lantern mango nutmeg onyx pearl raven paper pencil bottle mirror carpet pillow hotel train plane ticket doctor
nurse farmer baker sailor soldier teacher student pilot artist writer singer dancer lawyer judge captain market office
factory station airport library museum theater church tower palace street square corner village county country nation world
planet moon star sun light shadow color sound music voice song story poem letter number answer question problem reason result
effect cause cost price value money bank coin gold silver iron steel wood glass plastic cotton leather wool silk sugar salt
bread butter cheese milk coffee water juice soup rice pasta potato onion carrot bean pea corn wheat flour egg meat chicken
beef fish shrimp fruit berry cherry grape peach plum banana melon flower grass tree leaf root seed branch forest mountain
hill lake pond creek beach coast wave tide wind rain snow ice fire smoke dust sand mud rock cave field road path trail gate
fence wall roof floor door stair room table chair desk shelf drawer closet lamp clock phone radio camera screen keyboard
cable wire battery motor wheel brake pedal handle switch plug tool nail screw bolt hinge chain rope string thread needle
scissors knife fork spoon plate bowl cup pan pot oven stove fridge sink towel soap brush comb razor shirt pants skirt dress
coat glove scarf boot sock belt ring watch bag purse wallet hammer saw drill shovel rake bucket hose ladder paint glue tape
stamp envelope card map plan chart graph list note page book chapter title author reader editor report message signal code
key lock alarm event meeting lunch dinner party game match team player coach score goal race prize medal trophy flag badge
uniform weapon shield sword arrow bow spear cannon ship boat canoe raft sail deck port dock crane truck bus taxi van bike
horse cart sled tent camp hut cabin barn stable farm ranch garden orchard vineyard mill mine quarry well pump pipe valve
tank server cluster node rank link switch router cache memory disk kernel thread token tensor model layer expert batch queue
log metric trace health status version release build test error warning network address port socket protocol request
response client session user group role policy budget limit window stream buffer page table index column row block shard
head worker prompt reply draft weight""".split()
WORDS = sorted(set(WORDS))

VERBS = """create delete update open close start stop send fetch check find move copy rename lock unlock add remove list show
order cancel schedule assign approve reject archive restore upload download scan print play pause""".split()
NOUNS = """task ticket file folder invoice order user account group meeting reminder note photo song playlist room door window
lamp heater fan camera sensor robot drone truck parcel package report dashboard chart table record job backup server service
container image volume queue topic channel message thread contact event recipe garden plant""".split()
PARAMS = {
    "string": """title name label owner target source path color city address topic category status message comment reason email
code id zone region query text language mode level format priority""".split(),
    "integer": "count amount size limit quantity year port number minutes seconds days pages width height index version".split(),
    "number": "price weight distance temperature score rate ratio volume speed".split(),
    "boolean": "force urgent public active silent recursive enabled dry_run".split(),
    "array": "tags items names labels files".split()}

ONSETS = "b c d f g h j k l m n p r s t v w z br cl dr fl gr kr pl pr st tr sh th".split()
VOWELS = "a e i o u ai ea oo".split()
CODAS = ["", "", "", "n", "r", "l", "s", "k", "m", "t", "x"]

TOPICS = """population history president weather distance height weight age origin meaning color price size owner inventor
author king queen flag currency language music food climate""".split()


def pseudo(r):
    """A made-up word of two or three syllables."""
    return "".join(r.choice(ONSETS) + r.choice(VOWELS) + r.choice(CODAS) for _ in range(r.randint(2, 3)))


def word(r):
    """A real word, or now and then a made-up one."""
    return r.choice(WORDS) if r.random() < 0.75 else pseudo(r)


def phrase(r, lo=2, hi=5):
    """Several words."""
    return " ".join(word(r) for _ in range(r.randint(lo, hi)))


def path(r):
    """A file path."""
    return "/" + "/".join(word(r) for _ in range(r.randint(1, 3))) + "." + r.choice("txt json log md conf csv py".split())


def node(r):
    """A machine name."""
    return r.choice(["spark", "node", "gpu", "rank", "host"]) + r.choice(["-", ""]) + str(r.randint(0, 99))


def code(r):
    """Something to remember."""
    k = r.random()
    if k < 0.5:
        return word(r)
    if k < 0.65:
        return str(r.randint(10, 9999))
    if k < 0.85:
        return word(r) + "-" + str(r.randint(1, 99))
    return pseudo(r)
