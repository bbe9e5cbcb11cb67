"""Make memory-like training pairs from templates: conversations, and notes with identifiers.

All texts are our own, free of others' licenses. A question about a person is answered by that
person's turns, in first person. Hard negatives are the conversation's other turns: the other
speaker asking the question, echoes, small talk, other facts of the person, and the same kind of
fact with other details. Chats hold the same conversations as windows of several turns under a date.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Row = tuple[str, list[int], list[int]]

FIRST_NAMES = (
    "Aaliyah Adam Aiko Alejandro Alice Amir Amara Ana Andrew Anita Anton Arjun Astrid Beatriz Ben Bianca Bruno Camila Carlos "
    "Carmen Cedric Chen Chiara Chloe Clara Daniel Daria David Deepa Diego Dmitri Dolores Eduardo Elena Elif Emma Enzo Erik "
    "Esther Ethan Fatima Felix Fiona Francesca Frank Freya George Giulia Grace Greta Hana Hannah Hassan Helen Henrik Hugo "
    "Ibrahim Ines Ingrid Isaac Isabel Ivan Jack Jamal Jana Jasmine Javier Jia Johan Jonas Jorge Josephine Judith Julia Kamal "
    "Karim Katya Keiko Kenji Khadija Klara Kofi Lars Laura Leila Leo Liam Lina Lorenzo Lucas Lucia Luis Magnus Malik Marco "
    "Margaret Maria Marta Mateo Maya Mehmet Mei Mia Miguel Mila Mohammed Nadia Naomi Natalia Nathan Niamh Nikolai Nina Noah "
    "Nora Olga Oliver Omar Oscar Owen Paolo Patricia Pedro Petra Priya Quentin Rachel Rafael Rahul Rania Ravi Rebecca Rosa "
    "Ruth Ryan Samira Samuel Sanjay Sara Sebastian Selma Simon Sofia Stefan Stella Susan Svetlana Tariq Teresa Theo Thomas "
    "Tomas Uma Valentina Victor Vikram Wanda Wei Yara Yasmin Yuki Yusuf Zainab Zara Zoe"
).split()

SLOTS: Mapping[str, tuple[str, ...]] = {
    "when": (
        "yesterday", "last night", "last week", "last weekend", "two days ago", "last Friday", "on Monday", "this morning",
        "a month ago", "last month", "in spring", "over the holidays", "three weeks ago", "last summer", "back in March",
        "on the 4th of May", "the day before yesterday", "a few days ago", "on Sunday", "last year", "in 2021",
    ),
    "soon": (
        "next week", "tomorrow", "next month", "this Saturday", "in two weeks", "in October", "on Thursday", "after the summer",
        "by the end of the year", "on the 12th of June", "next weekend",
    ),
    "city": (
        "Lisbon", "Kyoto", "Oslo", "Montreal", "Cape Town", "Valencia", "Prague", "Seattle", "Hanoi", "Edinburgh", "Lima",
        "Krakow", "Marrakesh", "Vienna", "Denver", "Naples", "Istanbul", "Reykjavik", "Nairobi", "Melbourne", "Ghent",
    ),
    "relative": (
        "sister", "brother", "mother", "father", "grandmother", "uncle", "aunt", "cousin", "daughter", "son", "niece",
        "husband", "wife", "grandfather", "best friend", "neighbor", "roommate", "mother-in-law",
    ),
    "pet": (
        "a beagle puppy", "a grey kitten", "two guinea pigs", "an old greyhound", "a parrot", "a tabby cat", "a tortoise",
        "a rescue dog", "three hens", "a hamster", "a husky", "a pair of budgies",
    ),
    "petname": ("Biscuit", "Mango", "Pixel", "Shadow", "Olive", "Rocket", "Nugget", "Waffles", "Ziggy", "Clover", "Pepper"),
    "hobby": (
        "pottery", "bird watching", "rock climbing", "knitting", "chess", "salsa dancing", "woodworking", "fencing",
        "astrophotography", "gardening", "stand-up comedy", "calligraphy", "beekeeping", "surfing", "baking bread", "archery",
        "film photography", "model trains", "open-water swimming", "origami", "fly fishing",
    ),
    "instrument": ("the cello", "the piano", "the ukulele", "the drums", "the accordion", "the violin", "the bass", "the flute"),
    "food": (
        "mushroom risotto", "pad thai", "lentil soup", "shakshuka", "dumplings", "fish tacos", "pumpkin curry", "lasagne",
        "ramen", "paella", "apple strudel", "jollof rice", "pierogi", "cinnamon rolls", "goulash", "falafel",
    ),
    "drink": ("oat milk lattes", "green tea", "black coffee", "mint tea", "hot chocolate", "kombucha", "ginger beer", "mate"),
    "disliked": (
        "cilantro", "crowded places", "horror films", "flying", "olives", "early meetings", "loud music", "spiders",
        "small talk", "raisins", "cold showers", "video calls", "roller coasters", "mayonnaise",
    ),
    "allergy": ("peanuts", "shellfish", "penicillin", "cats", "pollen", "gluten", "bee stings", "strawberries", "latex"),
    "job": (
        "a nurse", "a data analyst", "a landscape architect", "a school teacher", "a pastry chef", "a paramedic", "a plumber",
        "a translator", "a game designer", "a lawyer", "a bus driver", "a librarian", "a physiotherapist", "an electrician",
    ),
    "company": ("a solar startup", "the city hospital", "a bank", "a small bakery", "the university", "a museum", "an airline",
                "a law firm", "a robotics lab", "a publishing house", "a veterinary clinic"),
    "subject": ("marine biology", "Portuguese", "accounting", "art history", "nursing", "sign language", "machine learning",
                "psychology", "Japanese", "carpentry", "creative writing", "statistics", "first aid"),
    "vehicle": ("an electric bike", "a used camper van", "a red hatchback", "a motorbike", "a kayak", "a folding bicycle"),
    "gadget": ("a telescope", "a record player", "an espresso machine", "a sewing machine", "a drone", "a 3D printer",
               "a film camera", "an air fryer", "a standing desk", "noise-cancelling headphones"),
    "event": ("a jazz festival", "a charity run", "a poetry slam", "a science fair", "a food market", "a street art tour",
              "a pride parade", "a cooking class", "a ceramics fair", "a book signing", "an opera", "a football match",
              "a robotics contest", "a yoga retreat", "a town hall meeting", "a comic convention", "a beach cleanup"),
    "race": ("a half marathon", "a triathlon", "a 10K", "a chess tournament", "a baking contest", "a swimming meet",
             "a photo competition", "a debate contest", "a hackathon"),
    "place_rank": ("first", "second", "third", "fifth", "last", "eleventh"),
    "author": ("Ursula Berg", "Tom Adeyemi", "Rhea Castell", "Ivo Marinov", "Lena Osterman", "Paul Whitlock", "Mina Sato"),
    "title": ("The Salt Road", "Nine Lanterns", "A House of Rivers", "Paper Moons", "The Quiet Engineer", "Winter Orchard",
              "Signals from Home", "The Glass Harbor", "Letters to Tomorrow", "Blue Static", "The Last Cartographer"),
    "injury": ("sprained my ankle", "broke my wrist", "pulled a muscle in my back", "got a concussion", "burned my hand",
               "tore a ligament in my knee", "chipped a tooth", "caught the flu"),
    "how_hurt": ("playing basketball", "falling off a ladder", "hiking in the rain", "moving a sofa", "skiing",
                 "slipping on the stairs", "cooking dinner", "on a trampoline"),
    "reason": (
        "I needed a change", "the rent became too high", "my doctor told me to", "I wanted to be closer to my family",
        "I was burned out", "it had been a dream of mine since childhood", "a friend talked me into it", "I lost a bet",
        "I wanted to give something back", "it helps me sleep", "I was bored at home", "my old one broke",
        "the commute was killing me", "I want to set an example for my kids",
    ),
    "feeling": ("so happy", "a bit nervous", "really proud", "exhausted", "relieved", "heartbroken", "over the moon", "furious",
                "calm for the first time in weeks", "homesick", "grateful", "overwhelmed"),
    "object": ("my passport", "my grandmother's ring", "my house keys", "my laptop", "a silver bracelet", "my wallet",
               "my favourite scarf", "a box of old letters", "my hearing aid"),
    "spot": ("on the train", "behind the couch", "at the gym", "in a taxi", "in the garden shed", "at the airport",
             "under the car seat", "in the laundry", "at the library"),
    "amount": ("200 dollars", "1,500 euros", "40 pounds", "3,000 dollars", "75 euros", "12 dollars", "600 pounds"),
    "cause": ("an animal shelter", "a food bank", "a hospice", "a refugee centre", "the local library", "a coding club for kids",
              "an after-school programme", "a community garden"),
    "time": ("6 am", "half past seven", "9:15", "noon", "10 pm", "a quarter to five", "8 in the evening"),
    "goal": ("run a marathon", "publish a novel", "open a café", "learn to sail", "buy a small house by the sea",
             "retire early", "walk the Camino", "start my own company", "see the northern lights", "adopt a child"),
    "gift": ("a hand-knitted blanket", "a vintage watch", "a set of paints", "concert tickets", "a fountain pen",
             "a potted lemon tree", "a first-edition novel", "a silver necklace", "a leather notebook"),
    "symptom": ("migraines", "trouble sleeping", "back pain", "panic attacks", "a constant cough", "dizzy spells"),
    "remedy": ("long walks", "meditation", "swimming", "writing a journal", "breathing exercises", "cutting out coffee",
               "talking to a therapist", "playing the guitar"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    """One kind of fact. Statements are in first person; `{n}` in a question is the speaker."""

    statements: tuple[str, ...]
    questions: tuple[str, ...]
    echoes: tuple[str, ...]


FRAMES: tuple[Frame, ...] = (
    Frame(("I finally adopted {pet} {when}! We named it {petname}.", "Guess what, {pet} moved in with me {when}. The name is {petname}.",
           "There's a new family member: {pet}. I called it {petname} because {reason}."),
          ("When did {n} adopt a pet?", "What is the name of {n}'s pet?", "What kind of animal does {n} have?", "What pet did {n} get?"),
          ("Aww, that's adorable, {n}! Pets change everything.", "How is {petname} settling in, {n}?")),
    Frame(("I moved to {city} {when} because {reason}.", "So I packed up everything and relocated to {city} {when}; {reason}.",
           "I live in {city} now, since {reason}."),
          ("Where did {n} move to?", "Why did {n} move to {city}?", "When did {n} relocate?", "Which city does {n} live in now?"),
          ("Moving is such a big step, {n}. How do you like it there?", "I've always wanted to see {city}!")),
    Frame(("I went to {city} with my {relative} {when}. We ate {food} every single day.",
           "My {relative} and I spent a long weekend in {city} {when}.", "We flew to {city} {when}, my {relative} had never been on a plane."),
          ("Who did {n} travel to {city} with?", "Where did {n} go on vacation with {pos} {relative}?", "When was {n} in {city}?",
           "Which city has {n} visited?"),
          ("That sounds like a wonderful trip, {n}!", "Did you take any photos in {city}?")),
    Frame(("I'm flying to {city} {soon} to visit my {relative}.", "Big news: I booked tickets to {city}, leaving {soon}.",
           "I can't wait, {soon} I'll be in {city}."),
          ("When is {n} going to {city}?", "What travel plans does {n} have?", "Where is {n} planning to travel?"),
          ("Have a safe flight, {n}!", "Lucky you. Bring me something back!")),
    Frame(("I took up {hobby} {when}. {reason_cap}.", "These days I spend every free hour on {hobby}.",
           "I've really gotten into {hobby} lately, {reason}.", "{hobby_cap} is my way to unwind after work."),
          ("What hobby did {n} take up?", "What does {n} do in {pos} free time?", "Why did {n} start {hobby}?", "How does {n} relax?",
           "What is {n}'s hobby?"),
          ("I tried {hobby} once and failed badly, haha.", "Good for you, {n}! Everyone needs an outlet.")),
    Frame(("I started taking lessons in {instrument} {when}.", "I've been playing {instrument} since I was seven.",
           "My {relative} is teaching me {instrument}."),
          ("What instrument does {n} play?", "Who teaches {n} music?", "How long has {n} been playing {instrument}?"),
          ("You should play something for us, {n}!", "Music is good for the soul.")),
    Frame(("I cooked {food} for my {relative} {when} and it turned out great.", "My signature dish is {food}, an old recipe of my {relative}.",
           "If you ever come over I'll make you {food}."),
          ("What did {n} cook?", "What is {n}'s signature dish?", "Who did {n} cook for?", "Whose recipe does {n} use?"),
          ("Yum! I'd love the recipe, {n}.", "Now I'm hungry.")),
    Frame(("I can't start the day without {drink}.", "Honestly, {drink} beats everything else for me.", "I switched to {drink} because {reason}."),
          ("What does {n} like to drink?", "What is {n}'s favorite drink?", "What does {n} drink in the morning?"),
          ("I'm more of a water person myself.", "Same here, {n}, same here.")),
    Frame(("I really can't stand {disliked}.", "You know me, {disliked} just isn't my thing.", "I avoid {disliked} whenever I can."),
          ("What does {n} dislike?", "What can {n} not stand?", "What does {n} try to avoid?"),
          ("Haha, I remember that about you, {n}.", "Oh come on, it's not that bad!")),
    Frame(("I'm allergic to {allergy}, found out {when}.", "The doctor confirmed it: {allergy} could kill me.", "No thanks, {allergy} makes my throat swell up."),
          ("What is {n} allergic to?", "Does {n} have any allergies?", "Why does {n} avoid {allergy}?"),
          ("Oh no, that must be annoying, {n}.", "I'll keep that in mind for the party.")),
    Frame(("I got a new job as {job} at {company}! I start {soon}.", "{company_cap} hired me {when}; I'm {job} now.",
           "I quit my old job {when} to become {job}, {reason}."),
          ("What is {n}'s job?", "Where does {n} work?", "When does {n} start the new job?", "What does {n} do for a living?",
           "Why did {n} change jobs?"),
          ("Congratulations on the job, {n}! You deserve it.", "How are the colleagues?")),
    Frame(("I got laid off {when}. {company_cap} is closing the whole department.", "I lost my position at {company} {when}."),
          ("When did {n} lose {pos} job?", "What happened to {n}'s job?", "Which employer let {n} go?"),
          ("I'm so sorry to hear that, {n}.", "Something better will come along.")),
    Frame(("I signed up for a course in {subject} {when}.", "I'm studying {subject} in the evenings, {reason}.",
           "I passed my exam in {subject} {when}, I'm {feeling}!"),
          ("What is {n} studying?", "What course did {n} enroll in?", "Why is {n} learning {subject}?", "Which exam did {n} pass?"),
          ("You're never too old to learn, {n}!", "How hard is {subject}?")),
    Frame(("I bought {vehicle} {when} for {amount}.", "I treated myself to {vehicle}, {reason}.", "After months of saving I finally own {vehicle}."),
          ("What did {n} buy?", "How much did {n} pay for {vehicle}?", "What vehicle does {n} own?", "Why did {n} get {vehicle}?"),
          ("Take me for a ride some day, {n}!", "Nice, how does it handle?")),
    Frame(("I ordered {gadget} {when} and it changed my life.", "My {relative} gave me {gadget} for my birthday.",
           "I've been saving for {gadget}; {amount} to go."),
          ("What gadget did {n} get?", "Who gave {n} {gadget}?", "What is {n} saving up for?", "What did {n} get for {pos} birthday?"),
          ("I'm a little jealous, {n}.", "Is it worth the money?")),
    Frame(("I went to {event} with my {relative} {when}. I was {feeling}.", "{when_cap} I was at {event}, what a crowd!",
           "We spent all of Saturday at {event}."),
          ("When did {n} go to {event}?", "Who went to {event} with {n}?", "What event did {n} attend?", "How did {n} feel at {event}?"),
          ("That must have been fun, {n}!", "I wish I could have come along.")),
    Frame(("I'm organizing {event} {soon}.", "They asked me to speak at {event} {soon}, I'm {feeling}.", "Save the date: I'm hosting {event} {soon}."),
          ("What is {n} organizing?", "When is {n} hosting {event}?", "What event will {n} take part in?"),
          ("Count me in, {n}!", "Do you need help with anything?")),
    Frame(("I came in {place_rank} at {race} {when}!", "I finished {place_rank} in {race}, I'm {feeling}.", "{when_cap} I took part in {race} and placed {place_rank}."),
          ("How did {n} do in {race}?", "What competition did {n} enter?", "What place did {n} finish?", "When did {n} compete?"),
          ("Wow, all that training paid off, {n}.", "You're unstoppable!")),
    Frame(("I just finished \"{title}\" by {author}. I cried at the end.", "I'm halfway through \"{title}\", my {relative} lent it to me.",
           "\"{title}\" is the best book I've read in years."),
          ("What book is {n} reading?", "Which book does {n} love?", "Who wrote the book {n} finished?", "Who recommended \"{title}\" to {n}?"),
          ("I'll put it on my list, {n}.", "I never have time to read.")),
    Frame(("I {injury} {how_hurt} {when}.", "Not a good week: I {injury} {how_hurt}.", "{when_cap} I {injury}, so no sports for a month."),
          ("How did {n} get hurt?", "What injury did {n} have?", "When did {n} get injured?", "What happened to {n}'s health?"),
          ("Ouch! Get well soon, {n}.", "Please take it easy.")),
    Frame(("My {relative} passed away {when}. I'm {feeling}.", "We lost my {relative} {when} after a long illness."),
          ("Who in {n}'s family died?", "When did {n}'s {relative} pass away?", "What loss did {n} go through?"),
          ("I'm so sorry for your loss, {n}.", "My thoughts are with you and your family.")),
    Frame(("My {relative} is getting married {soon} in {city}!", "My {relative} got engaged {when}, everyone is crying."),
          ("Who is getting married in {n}'s family?", "Where is the wedding of {n}'s {relative}?", "When is the wedding {n} will attend?"),
          ("Love is in the air!", "What will you wear, {n}?")),
    Frame(("My {relative} had a baby {when}, I'm {feeling}.", "I became a parent {when}!", "We're expecting a baby {soon}."),
          ("When was the baby in {n}'s family born?", "What family news did {n} share?"),
          ("Congratulations to all of you, {n}!", "How are the nights?")),
    Frame(("I lost {object} {spot} {when}.", "Can you believe it, I left {object} {spot}.", "I found {object} {spot}, after looking for weeks."),
          ("What did {n} lose?", "Where did {n} leave {object_third}?", "Where was {n}'s lost thing?"),
          ("Oh no! Did anyone hand it in, {n}?", "That happens to me all the time.")),
    Frame(("I volunteer at {cause} every week, {reason}.", "I donated {amount} to {cause} {when}.", "{when_cap} I started helping out at {cause}."),
          ("Where does {n} volunteer?", "Why does {n} help at {cause}?", "Which cause did {n} donate to?", "How much did {n} donate?"),
          ("The world needs more people like you, {n}.", "That's really generous.")),
    Frame(("I get up at {time} every day.", "I go to bed at {time}, otherwise I'm useless.", "My shift starts at {time} now."),
          ("When does {n} get up?", "What time does {n} go to sleep?", "When does {n}'s shift start?"),
          ("I could never do that, {n}.", "I'm a night owl myself.")),
    Frame(("One day I want to {goal}.", "My big dream is to {goal}, {reason}.", "By forty I hope to {goal}."),
          ("What is {n}'s dream?", "What does {n} want to achieve?", "What goal has {n} set?"),
          ("You can do it, {n}!", "Dreams keep us going.")),
    Frame(("I gave my {relative} {gift} for the anniversary.", "My {relative} surprised me with {gift} {when}.", "I'm wrapping {gift} for my {relative} right now."),
          ("What gift did {n} give?", "What did {n}'s {relative} receive?", "What present was {n} given?", "Who did {n} buy {gift} for?"),
          ("That's so thoughtful, {n}.", "I never know what to buy people.")),
    Frame(("I've been having {symptom} for weeks. {remedy_cap} helps a bit.", "What keeps me going is {remedy}, it cured my {symptom}.",
           "When I'm stressed, {remedy} calms me down."),
          ("What helps {n} with {symptom}?", "How does {n} deal with stress?", "What health problem does {n} have?", "What calms {n} down?"),
          ("Have you seen a doctor, {n}?", "I should try that too.")),
    Frame(("I grew up in {city}, my {relative} still lives there.", "I was born in {city} but left as a kid.", "My family comes from {city}."),
          ("Where did {n} grow up?", "Where is {n} from?", "Who of {n}'s family still lives in {city}?"),
          ("I've never been there, {n}.", "That explains the accent!")),
    Frame(("I used to work as {job} before {company} hired me.", "Years ago I was {job} in {city}.", "My first job was being {job}."),
          ("What was {n}'s former job?", "What did {n} do before?", "Which job did {n} have years ago?"),
          ("You have lived many lives, {n}.", "I can't picture you doing that.")),
    Frame(("I painted the kitchen {when}, now it's dark green.", "We tore down the wall between kitchen and living room {when}.",
           "I'm renovating the bathroom {soon}, the tiles cost {amount}."),
          ("What is {n} renovating?", "What did {n} change at home?", "How much do the tiles cost {n}?"),
          ("Home improvement never ends, {n}.", "Send pictures when it's done!")),
    Frame(("I had a fight with my {relative} {when} about money.", "My {relative} and I aren't talking since {when}.",
           "I made up with my {relative} {when}, I'm {feeling}."),
          ("Who did {n} argue with?", "Why are {n} and {pos} {relative} not talking?", "When did {n} reconcile with {pos} {relative}?"),
          ("Family can be hard, {n}.", "Give it some time.")),
    Frame(("I've become a vegetarian {when}, {reason}.", "I gave up smoking {when}.", "I stopped drinking alcohol, {reason}.",
           "I deleted all my social media accounts {when}, {reason}."),
          ("What lifestyle change did {n} make?", "What did {n} give up?", "Why did {n} stop?", "What habit did {n} change?"),
          ("That takes a lot of discipline, {n}.", "How do you feel now?")),
    Frame(("I met {other_name} at {event} {when}; we've been dating since.", "I ran into {other_name}, my old classmate, at {event}.",
           "{other_name} introduced me to the people from {company}."),
          ("Who did {n} meet at {event}?", "How does {n} know {other_name}?", "Who is {other_name} to {n}?", "Who is {n} dating?"),
          ("Small world, {n}!", "Tell me everything about {other_name}.")),
    Frame(("We lost power for two days {when} because of the storm.", "My basement flooded {when}, the damage is {amount}.",
           "Someone broke into my car {when} and took {object}."),
          ("What misfortune did {n} have?", "What was stolen from {n}?", "How high was {n}'s damage?", "When was there damage at {n}'s place?"),
          ("That's awful, {n}. Are you insured?", "Let me know if you need a hand.")),
    Frame(("I planted tomatoes and basil on the balcony {when}.", "My roses finally bloom, my {relative} is jealous.", "I built a raised bed {when}, {reason}."),
          ("What did {n} plant?", "What grows in {n}'s garden?", "What did {n} build in the garden?"),
          ("You have a green thumb, {n}.", "Mine always die.")),
    Frame(("I think we should save more before buying anything; {amount} a month would do.", "I believe honesty matters more than being nice.",
           "In my opinion {hobby} should be taught in school.", "If you ask me, {city} is overrated."),
          ("What does {n} think about {city}?", "What is {n}'s opinion on {hobby}?", "What does {n} value?", "How much would {n} save each month?"),
          ("I see it differently, {n}.", "Fair point.")),
)  # fmt: skip

ASKED_FOR: Mapping[str, tuple[str, ...]] = {
    "When": ("when", "soon", "time", "when_cap"),
    "What time": ("time",),
    "Why": ("reason", "reason_cap"),
    "Whose": ("relative",),
    "Who wrote": ("author",),
    "Who": ("relative", "other_name"),
    "Where": ("city", "spot", "company", "cause", "event", "company_cap"),
    "Which city": ("city",),
    "Which employer": ("company", "company_cap"),
    "How much": ("amount",),
    "How high": ("amount",),
    "How did {n} feel": ("feeling",),
    "What place": ("place_rank",),
    "What is the name": ("petname",),
}

OPENINGS = (
    "", "", "", "Hey {o}! ", "Thanks, {o}! ", "Hi {o}, good to hear from you. ", "Yeah, totally. ", "Oh, by the way, ", "Well, ",
    "Long time no talk, {o}! ", "Good question. ", "Haha, right? ", "You won't believe this. ", "Not much new here, but ",
    "I know what you mean, {o}. ", "Wow, nice! ", "I appreciate that, {o}. ",
)  # fmt: skip
CLOSINGS = (
    "", "", "", " How about you?", " What have you been up to?", " It means a lot to me.", " Can't complain.", " Crazy, right?",
    " What do you think?", " I'll tell you more when we meet.", " I still can't believe it.", " How was your week, {o}?",
    " It was worth it.", " I learned a lot from it.", " Do you have any tips?",
)  # fmt: skip
SMALL_TALK = (
    "Hey {o}, how are you doing?", "Good morning {o}! Did you sleep well?", "Talk to you soon, {o}!", "Sounds great, {o}!",
    "That's so true, {o}.", "What's your plan for the weekend, {o}?", "The weather has been terrible here.", "Haha, you're the best.",
    "I have to run, my phone is dying.", "Let's catch up properly soon, {o}.", "Take care, {o}!", "Thanks for listening, {o}.",
    "Wow, tell me more, {o}!", "How did that make you feel, {o}?", "What made you decide that, {o}?", "I'm here for you, {o}.",
)  # fmt: skip

MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December",
)  # fmt: skip
CHAT_HEADERS = (
    "[{year}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}]", "Chat of {day} {name} {year}, {hour}:{minute:02d}",
    "{name} {day}, {year}", "Date: {day}.{month}.{year} {hour}:{minute:02d}", "{year}/{month}/{day}",
)  # fmt: skip

SYSTEMS = (
    "staging database", "billing service", "auth gateway", "search cluster", "message broker", "CI runner", "mail relay",
    "metrics server", "backup job", "image resizer", "feature store", "mobile app", "payment webhook", "log pipeline",
    "internal wiki", "rate limiter", "scheduler", "CDN", "VPN", "data warehouse", "landing page", "admin panel", "job queue",
)  # fmt: skip
NOTE_SLOTS: Mapping[str, tuple[str, ...]] = {
    "tool": ("ruff", "terraform", "pnpm", "docker compose", "make", "pytest", "gradle", "cargo", "ansible", "helm", "just", "bazel"),
    "error": ("ERR_CONNECTION_RESET", "KeyError: 'user_id'", "ORA-00942", "HTTP 502", "SIGSEGV", "E1101", "ETIMEDOUT", "exit code 137",
              "SSL_ERROR_SYSCALL", "TypeError: NoneType", "deadlock detected", "ENOSPC", "status 429", "panic: nil map"),
    "fix": ("raise the open-file limit", "pin the driver to the older version", "clear the cache folder", "restart the worker after the migration",
            "set the proxy variable", "grant the role again", "shrink the batch size", "turn off keep-alive", "rebuild the index",
            "rotate the certificate"),
    "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "the first of the month", "every second Tuesday"),
    "style": ("tabs over spaces", "short commit messages", "tests before code", "dark mode", "British spelling", "answers without emojis",
              "type hints everywhere", "small pull requests", "bullet points", "functions over classes", "metric units", "24-hour times"),
    "choice": ("Postgres", "SQLite", "Redis", "Kafka", "FastAPI", "Svelte", "gRPC", "S3", "Rust", "Argo", "Protobuf", "DuckDB"),
    "loser": ("MongoDB", "Elasticsearch", "RabbitMQ", "Django", "Angular", "REST", "NFS", "Go", "Jenkins", "Avro", "Spark", "MySQL"),
    "because": ("it needs no server", "the team knows it", "the licence is friendlier", "latency was half", "it is cheaper to run",
                "migrations are simpler", "support ended", "it runs offline"),
}  # fmt: skip
NOTES: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (("The {system} answers on port {port}.", "Port {port} belongs to the {system}."),
     ("which port does the {system} use", "what port do I need for the {system}?", "{port}")),
    (("The {system} reads its password from {variable}.", "Set {variable} before you start the {system}."),
     ("which environment variable configures the {system}", "where does the {system} get its password", "{variable}")),
    (("{error} from the {system}: {fix}.", "When the {system} shows {error}, {fix}.", "We saw {error} in the {system}; the cure was to {fix}."),
     ("how to fix {error}", "{system} {error}", "what helped against {error} in the {system}?", "why does the {system} fail with {error}")),
    (("{person} owns the {system}.", "Ask {person} before you touch the {system}.", "The {system} is looked after by {person}."),
     ("who is responsible for the {system}?", "who owns the {system}", "whom do I ask about the {system}?", "what does {person} own?")),
    (("We chose {choice} over {loser} for the {system}, because {because}.", "Decision: the {system} uses {choice}, not {loser}; {because}."),
     ("why {choice} and not {loser}?", "what does the {system} use for storage or transport", "why did we decide on {choice} for the {system}?")),
    (("{person} prefers {style}.", "The user likes {style}.", "{person} asked us to stick to {style}."),
     ("what style does {person} like?", "how should I write for {person}?", "what are the user's preferences?", "does anyone prefer {style}?")),
    (("The {system} is released on {day}.", "Deploys of the {system} happen on {day}; {person} does them."),
     ("when is the {system} deployed?", "on which day do we release the {system}", "who deploys the {system}?")),
    (("Config of the {system} lives in {path}.", "Look into {path} for the settings of the {system}."),
     ("where is the configuration of the {system}?", "{path}", "which file configures the {system}")),
    (("Version {version} of the {system} broke logins; we rolled back.", "The {system} runs {version} since the last release."),
     ("which version of the {system} is running?", "what broke with {version}?", "why was the {system} rolled back")),
    (("Run `{tool} {command}` to rebuild the {system}.", "The {system} is checked with `{tool} {command}`."),
     ("how do I rebuild the {system}?", "which command checks the {system}", "{tool} {command}")),
    (("Ticket {ticket}: the {system} drops requests under load.", "{ticket} tracks the memory leak of the {system}."),
     ("{ticket}", "which ticket is about the {system}?", "what is {ticket} about?")),
    (("The {system} keeps logs for {number} days.", "The {system} times out after {number} seconds.", "At most {number} connections to the {system}."),
     ("what is the limit of the {system}?", "how long does the {system} keep logs?", "when does the {system} time out")),
    (("The key of the {system} expires on {date}.", "Maintenance of the {system} is planned for {date}."),
     ("when does the key of the {system} expire?", "when is the {system} down for maintenance", "what happens on {date}?")),
)  # fmt: skip


def dialogues(seed: int, conversations: int) -> tuple[list[str], list[Row]]:
    """Yield conversations of two people, each fact asked for once and answered by single turns."""
    chance = random.Random(seed)
    texts: list[str] = []
    rows: list[Row] = []
    for _ in range(conversations):
        turns, asked = _conversation(chance)
        _add(texts, rows, [turn.text for turn in turns], asked, chance)
    return texts, rows


def chats(seed: int, conversations: int, apart: float = 0.0) -> tuple[list[str], list[Row]]:
    """Cut the same conversations into dated windows, as chats are stored; questions ask for them.

    The share `apart` is kept by turns, so a question meets short and long texts.
    """
    chance = random.Random(seed)
    texts: list[str] = []
    rows: list[Row] = []
    for _ in range(conversations):
        turns, asked = _conversation(chance)
        windows: list[list[int]] = []
        start = 0
        while start < len(turns):
            stop = start + chance.randint(4, 11)
            window = list(range(start, min(stop, len(turns))))
            windows.extend(
                [[at] for at in window] if apart and chance.random() < apart else [window]
            )
            start = stop
        day, header = chance.randint(1, 20), chance.choice(CHAT_HEADERS)
        month, year = chance.randint(1, 12), chance.randint(2019, 2026)
        written = []
        for place, window in enumerate(windows):
            date = header.format(
                day=day + place * 8 // len(windows), month=month, name=MONTHS[month - 1], year=year, hour=chance.randint(7, 22),
                minute=chance.randint(0, 59),
            )  # fmt: skip
            said = [turns[at].text for at in window]
            written.append(said[0] if len(said) == 1 and apart else "\n".join([date, *said]))
        owner = {at: place for place, window in enumerate(windows) for at in window}
        by_window = [
            (question, sorted({owner[at] for at in answers})) for question, answers in asked
        ]
        _add(texts, rows, written, by_window, chance)
    return texts, rows


def notes(seed: int, stores: int) -> tuple[list[str], list[Row]]:
    """Yield stores of short technical notes, each asked for once against the others."""
    chance = random.Random(seed)
    texts: list[str] = []
    rows: list[Row] = []
    for _ in range(stores):
        pairs = list(_notes_of_a_store(chance))
        _add(
            texts,
            rows,
            [note for note, _ in pairs],
            [(question, [at]) for at, (_, question) in enumerate(pairs)],
            chance,
        )
    return texts, rows


def _add(
    texts: list[str],
    rows: list[Row],
    turns: Sequence[str],
    asked: Sequence[tuple[str, Sequence[int]]],
    chance: random.Random,
) -> None:
    start = len(texts)
    texts.extend(turns)
    for question, answers in asked:
        known = {turns[at] for at in answers}
        others = [start + other for other in range(len(turns)) if turns[other] not in known]
        # Turns around the answer share its topic: the hardest negatives come first.
        others.sort(
            key=lambda other: (min(abs(other - start - at) for at in answers) > 2, chance.random())
        )
        rows.append((question, [start + at for at in answers], others[:15]))


@dataclass(frozen=True, slots=True)
class Turn:
    """An utterance. `told` lists its facts: frame number, speaker and statement."""

    text: str
    told: tuple[tuple[int, str, str], ...] = ()


def _conversation(chance: random.Random) -> tuple[list[Turn], list[tuple[str, list[int]]]]:
    speakers = chance.sample(FIRST_NAMES, 2)
    facts = []
    for number in chance.sample(range(len(FRAMES)), chance.randint(4, 9)):
        facts += [(number, chance.randrange(2)) for _ in range(chance.choice((1, 2, 2, 3, 4)))]
    chance.shuffle(facts)
    turns: list[Turn] = []
    questions: list[tuple[str, int, str, list[str]]] = []
    waiting: list[tuple[int, str, str]] = []
    for number, teller in facts:
        frame, name, other = FRAMES[number], speakers[teller], speakers[1 - teller]
        slots = slots_of(chance, name, other)
        statement = filled(chance.choice(frame.statements), slots)
        found = _question(chance, frame, statement, slots)
        if found is not None:
            questions.append((found[0], number, name, found[1]))
        told = [(number, name, statement)]
        if waiting and waiting[0][1] == name and chance.random() < 0.5:
            told.insert(chance.randrange(2), waiting.pop())
        elif not waiting and chance.random() < 0.2:
            waiting = told
            continue
        turns += _exchange(chance, frame, told, found[0] if found else None, slots)
    for fact in waiting:
        turns.append(Turn(f"{fact[1]}: {fact[2]}", (fact,)))
    asked = []
    for question, number, name, particulars in questions:
        answers = [at for at, turn in enumerate(turns) if _answers(turn, number, name, particulars)]
        if answers:
            asked.append((question, answers))
    return turns, asked


def _answers(turn: Turn, number: int, name: str, particulars: Sequence[str]) -> bool:
    return any(
        frame == number and teller == name and all(one in statement for one in particulars)
        for frame, teller, statement in turn.told
    )


def _exchange(
    chance: random.Random,
    frame: Frame,
    told: Sequence[tuple[int, str, str]],
    question: str | None,
    slots: Mapping[str, str],
) -> list[Turn]:
    name, other = slots["n"], slots["o"]
    turns = []
    before = chance.random()
    if before < 0.3:
        turns.append(Turn(f"{other}: {chance.choice(SMALL_TALK).format(o=name)}"))
    elif before < 0.6 and question is not None:
        turns.append(
            Turn(
                f"{other}: {tidy(chance.choice(OPENINGS).format(o=name) + _to_the_face(question, name))}"
            )
        )
    said = " ".join(statement for _, _, statement in told)
    said = chance.choice(OPENINGS).format(o=other) + said + chance.choice(CLOSINGS).format(o=other)
    turns.append(Turn(f"{name}: {tidy(said)}", tuple(told)))
    if chance.random() < 0.6:
        echo = filled(chance.choice(frame.echoes), slots)
        turns.append(Turn(f"{other}: {tidy(echo + chance.choice(CLOSINGS).format(o=name))}"))
    return turns


def _to_the_face(question: str, name: str) -> str:
    for theirs, ours in (
        (f"{name}'s", "your"), (f"does {name}", "do you"), (f"Does {name}", "Do you"), (f"is {name}", "are you"),
        (f"was {name}", "were you"), (f"has {name}", "have you"), (name, "you"), ("his", "your"), ("her", "your"),
    ):  # fmt: skip
        question = re.sub(rf"\b{theirs}(?!\w)", ours, question)
    return question


def _question(
    chance: random.Random, frame: Frame, statement: str, slots: Mapping[str, str]
) -> tuple[str, list[str]] | None:
    questions = list(frame.questions)
    chance.shuffle(questions)
    # Prefer questions with details: they are unambiguous.
    questions.sort(
        key=lambda question: len(_particulars(question)) == 0, reverse=chance.random() < 0.4
    )
    for question in questions:
        named = [slots[slot] for slot in _particulars(question)]
        if all(value in statement for value in named) and _tells(statement, question, slots):
            return filled(question, slots), named
    return None


def _tells(statement: str, question: str, slots: Mapping[str, str]) -> bool:
    wanted = next((names for start, names in ASKED_FOR.items() if question.startswith(start)), None)
    asked = _particulars(question)
    return wanted is None or any(slots[slot] in statement for slot in wanted if slot not in asked)


def _particulars(question: str) -> list[str]:
    return [
        slot
        for slot in re.findall(r"\{(\w+)\}", question)
        if slot not in ("n", "pos", "object_third")
    ]


def slots_of(chance: random.Random, name: str, other: str) -> dict[str, str]:
    slots = {slot: chance.choice(values) for slot, values in SLOTS.items()}
    for slot in ("when", "reason", "hobby", "company", "remedy"):
        slots[f"{slot}_cap"] = slots[slot][:1].upper() + slots[slot][1:]
    possessive = chance.choice(("his", "her"))
    third = re.sub(r"^my ", f"{possessive} ", slots["object"])
    friend = chance.choice([one for one in FIRST_NAMES if one not in (name, other)])
    return slots | {
        "n": name,
        "o": other,
        "pos": possessive,
        "object_third": third,
        "other_name": friend,
    }


def filled(template: str, slots: Mapping[str, str]) -> str:
    return template.format_map(slots)


def tidy(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()


def _notes_of_a_store(chance: random.Random) -> Iterator[tuple[str, str]]:
    systems = chance.sample(SYSTEMS, 4)
    for _ in range(16):
        statements, questions = chance.choice(NOTES)
        slots = {slot: chance.choice(values) for slot, values in NOTE_SLOTS.items()} | _identifiers(
            chance
        )
        slots["system"] = chance.choice(systems)
        statement = chance.choice(statements)
        fitting = [
            one
            for one in questions
            if set(re.findall(r"\{(\w+)\}", one)) <= set(re.findall(r"\{(\w+)\}", statement))
        ]
        if fitting:
            yield filled(statement, slots), filled(chance.choice(fitting), slots)


def _identifiers(chance: random.Random) -> dict[str, str]:
    word = chance.choice(("billing", "auth", "search", "core", "edge", "mail", "jobs", "media"))
    end = chance.choice(("TOKEN", "PASSWORD", "URL", "DSN", "SECRET"))
    return {
        "port": str(chance.randint(1024, 65535)),
        "variable": f"{word.upper()}_{end}",
        "path": chance.choice(
            (
                f"/etc/{word}/config.yaml",
                f"deploy/{word}.toml",
                f"src/{word}/settings.py",
                f"~/.{word}rc",
            )
        ),
        "version": f"{chance.randint(0, 9)}.{chance.randint(0, 30)}.{chance.randint(0, 9)}",
        "command": chance.choice(
            ("build", "test", "sync", "lint", "up", "release", "check --all", "run migrate")
        ),
        "ticket": f"{chance.choice(('OPS', 'BUG', 'INFRA', 'WEB'))}-{chance.randint(100, 9999)}",
        "number": str(chance.choice((7, 14, 15, 30, 45, 60, 90, 100, 120, 250, 365, 500))),
        "date": f"{chance.randint(2023, 2027)}-{chance.randint(1, 12):02d}-{chance.randint(1, 28):02d}",
        "person": chance.choice(FIRST_NAMES),
    }


if __name__ == "__main__":
    sample_texts, sample_rows = dialogues(1, 2)
    for query, positives, negatives in sample_rows[:12]:
        print(query, "->", sample_texts[positives[0]], "| not", sample_texts[negatives[0]])
    note_texts, note_rows = notes(1, 1)
    for query, positives, negatives in note_rows[:12]:
        print(query, "->", note_texts[positives[0]], "| not", note_texts[negatives[0]])
