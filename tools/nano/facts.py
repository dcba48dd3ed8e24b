"""Closed set of questions and answers: a two-node cluster, and simple general knowledge.  Own text."""
import words
TERMS = """tensor parallelism|Tensor parallelism splits every large weight matrix over the two nodes, so each node computes half of every layer.
TP=2|TP=2 means that two ranks share one model: rank 0 is the head node and rank 1 is the worker node.
the head node|The head node runs rank 0, owns the HTTP port and answers the clients.
the worker node|The worker node runs rank 1, holds half of the weights and has no HTTP port.
NCCL|NCCL is the library that moves tensors between GPUs; on two Sparks it runs over RoCE.
RoCE|RoCE is RDMA over Ethernet; it lets one node read the memory of the other node without the CPU.
GID|A GID is the address of an RDMA port; the index can change at boot, so it must be resolved at every start.
ConnectX-7|ConnectX-7 is the network card in each Spark; it has two 200 gigabit ports.
unified memory|Unified memory means that CPU and GPU share one pool of 128 GB, so a full page cache can starve the GPU.
the KV cache|The KV cache keeps the keys and values of past tokens, so that each new token needs only one pass.
prefill|Prefill is the first pass over the whole prompt; it is limited by compute.
decode|Decode is the token by token phase; it is limited by memory bandwidth.
a prefix cache|A prefix cache reuses the stored state of a prompt that starts with the same tokens.
speculative decoding|Speculative decoding drafts several tokens cheaply and checks them in one pass of the big model.
MTP|MTP is multi-token prediction: one extra layer predicts the token after the next one.
DSpark|DSpark is the draft head of the 0731 release; it proposes five tokens in one pass.
acceptance rate|The acceptance rate is the share of drafted tokens that the big model agrees with.
chunked prefill|Chunked prefill cuts a long prompt into pieces, so that running answers are not blocked.
a sliding window|A sliding window lets each token see only the last 128 tokens directly.
CSA|CSA is compressed sparse attention: four tokens become one row and the indexer picks the best rows.
HCA|HCA is heavily compressed attention: 128 tokens become one row and all rows are read.
the lightning indexer|The lightning indexer scores compressed rows and keeps only the top ones for attention.
a hyper-connection|A hyper-connection keeps four residual streams and mixes them before and after each layer.
an attention sink|An attention sink is a learned logit in the softmax that lets a head attend to nothing.
a router|A router scores the experts and sends each token to the best few of them.
a shared expert|The shared expert is a feed-forward block that every token uses.
hash routing|Hash routing picks the experts from the token id alone; the first three layers use it.
FP8|FP8 is an eight bit float; dense weights use e4m3 with one scale for each 128 by 128 block.
FP4|FP4 is a four bit float; expert weights use e2m1 with one scale for each group of 32.
a checkpoint|A checkpoint is the set of weight files of a model; its index file names every tensor.
safetensors|Safetensors is a simple file format: a header in JSON followed by raw tensor data.
a tokenizer|A tokenizer turns text into token ids and back.
TTFT|TTFT is the time to first token, from the request to the first piece of the answer.
TPOT|TPOT is the time per output token after the first one.
a CUDA graph|A CUDA graph records many kernel launches once and replays them with little overhead.
an all-reduce|An all-reduce adds the partial results of all ranks and gives every rank the sum.
a unit file|A unit file tells systemd how to start, stop and restart a service.
earlyoom|Earlyoom is a daemon that kills processes when memory runs low; it can kill the server by mistake.
swap|Swap is disk space used as memory; keep it off on the Sparks so that the server never stalls.
a watchdog|A watchdog restarts the pair when one rank stops answering.
thinking mode|In thinking mode the model writes its reasoning before the answer.
a tool call|A tool call is a request of the model to run a function with named arguments.""".split("\n")

FIXES = """the worker does not join|Check the link with ping, then check that both nodes use the same GID and the same port.
NCCL hangs at start|Set the interface name on both nodes and check that the RoCE GID is valid, then start again.
the server runs out of memory|Lower the memory share, drop the page cache and start again.
the page cache is full|Run sync, then write 3 to drop_caches on both nodes before the start.
the first answer is slow|The first request warms up kernels and graphs; send one short request after the start.
decode is slow|Check the clocks, check that the link runs at 200 gigabit and that no other process uses the GPU.
prefill is slow|Raise the chunk size to 8192 tokens and check that the prompt is not tokenized twice.
the two nodes have different versions|Install the same build on both nodes and compare the digests before the start.
the checkpoint is damaged|Compare the digest of every shard with the index and copy the bad shard again.
a rank died|A dead rank ends the whole job; run tandem up again.
the link is down|Check the cable, bring the interface up and set the address again.
the GID changed after a reboot|Resolve the GID at every start instead of writing it into a file.
the port is busy|Find the old process that holds the port and stop it before a new start.
a tool call is cut|Raise max_tokens; a cut tool call must be reported as length and not as a call.
the answer repeats itself|Use temperature 1.0 and top_p 1.0 and check that the chat template is right.
thinking never ends|Set a thinking budget; the server then writes the end of thinking itself.
the context is too long|Shorten the prompt or raise the context limit, and check the KV cache size.
requests wait in the queue|Raise the number of sequences or add capacity; watch the queue length.
the GPU is hot|Check the fans and the room; lower the load until the clocks are stable.
the disk is full|Remove old logs and old checkpoints, then restart the download.
ssh to the worker fails|Copy the key of the head to the worker and check the host name.
the clocks of the nodes differ|Turn on time sync on both nodes.
earlyoom kills the server|Stop earlyoom or exclude the server from it.
the draft is never accepted|Check that the draft weights match the model and that every draft tensor was loaded.
graphs give wrong tokens|Turn the graphs off, compare the tokens, and report the difference.
the container does not see the GPU|Install the container toolkit and pass the GPU to the container.
jumbo frames fail|Set the MTU to 9000 on both nodes and on the switch.
the firewall blocks the link|Open the NCCL ports between the two nodes.
the logs are empty|Check the unit file: the log path must exist and be writable.""".split("\n")

HOWTO = """start the cluster|Run tandem up on the head; it starts both ranks and waits until the health check answers.
stop the cluster|Run tandem down on the head; it stops both ranks and frees both GPUs.
check the health|Run tandem status, or ask the health path; it is ready only when both ranks are alive.
read the logs|Run tandem logs on the head; it shows the logs of both ranks.
measure the speed|Run tandem bench with one client and with 32 clients, and note tokens per second.
test the link|Run a bandwidth test between the nodes; 200 gigabit should show about 24 GB per second.
update the model|Copy the new shards to both nodes, compare the digests, and restart the pair.
copy the weights to the worker|Use rsync over the fast link and compare the digests at the end.
free the memory|Stop the server, run sync, and drop the page cache.
find the GID|Read the gids folder of the RDMA device and take the RoCE v2 entry with the right address.
pin the threads|Pin the server to the big cores and leave the small cores to the system.
limit the thinking|Set the thinking budget in the request or in the server config.
use tools|Send the tool schemas with the request and run the calls that the model returns.
get JSON|Ask for JSON with a response format; the server then allows only valid JSON.
save power|Stop the pair when it is idle, or lower the clocks.
restart after a reboot|Enable the unit on both nodes; the head waits until the worker is there.
raise the context|Set the context limit and check that the KV cache fits into memory.
add a user|Create a new key, set its quota, and reload the keys.
rotate the keys|Add the new key, move the clients, and remove the old key.
back up the config|Copy the config folder of both nodes to a safe place.
check the versions|Run the version command on both nodes; the outputs must be equal.
watch the queue|Read the metrics path and look at the running and waiting requests.
choose the draft depth|Run the sweep and take the depth with the most tokens per second.
replace a cable|Stop the pair, change the cable, test the link, and start the pair.
report a bug|Save the logs of both ranks, the config, and the exact request.""".split("\n")

FACTS = """How many nodes does the cluster have?|The cluster has two nodes.
How many GPUs does one Spark have?|One Spark has one GPU, the GB10.
How much memory does one Spark have?|One Spark has 128 GB of unified memory.
What is the memory bandwidth of a Spark?|A Spark reads about 273 GB per second.
How fast is the link between the nodes?|The link runs at 200 gigabit per second.
Which node do I start first?|Start the head with tandem up; it starts the worker for you.
Which node answers the clients?|The head node answers the clients.
Which port does the server use?|The server listens on port 8000.
Which rank is the head?|The head is rank 0.
Which rank is the worker?|The worker is rank 1.
How many layers does the Flash model have?|The Flash model has 43 layers.
How many experts does a layer of Flash have?|A layer of Flash has 256 experts and one shared expert.
How many experts does a token use?|A token uses 6 experts and the shared expert.
How large is the checkpoint?|The checkpoint has about 156 GB, so it needs two nodes.
Does the model fit on one Spark?|No. It needs two Sparks.
What is the largest context?|The largest context is 1048576 tokens.
How large is the sliding window?|The sliding window has 128 tokens.
Which format do the experts use?|The experts use FP4 with groups of 32.
Which format do the dense weights use?|The dense weights use FP8 in blocks of 128 by 128.
What temperature should I use?|Use temperature 1.0.
What top_p should I use?|Use top_p 1.0.
Can the head run without the worker?|No. Both ranks must be alive.
Should swap be on?|No. Keep swap off.
Should I use jumbo frames?|Yes. Set the MTU to 9000 on both nodes.
What is rank 0?|Rank 0 is the head node.
What is rank 1?|Rank 1 is the worker node.
What does exit code 3 mean?|Exit code 3 means that a start check failed.
What is the name of this system?|The system is called Tandem.
Who are you?|I am Nano, a very small demo model.
What can you do?|I can chat, call tools, write JSON, add small numbers and remember what you tell me.
How many streams does a hyper-connection have?|It has four residual streams.
How many tokens does one CSA row hold?|One CSA row stands for four tokens.
How many tokens does one HCA row hold?|One HCA row stands for 128 tokens.""".split("\n")


CAPITALS = """France Paris|Italy Rome|Spain Madrid|Germany Berlin|England London|Austria Vienna|Japan Tokyo|Egypt Cairo
Norway Oslo|Peru Lima|Greece Athens|Ireland Dublin|Portugal Lisbon|Sweden Stockholm|Denmark Copenhagen|Finland Helsinki
Poland Warsaw|Hungary Budapest|Russia Moscow|China Beijing|India New Delhi|Canada Ottawa|Brazil Brasilia|Mexico Mexico City
Turkey Ankara|Kenya Nairobi|Cuba Havana|Chile Santiago|Vietnam Hanoi|Thailand Bangkok|Belgium Brussels|Iceland Reykjavik
Argentina Buenos Aires|Australia Canberra|Switzerland Bern|Ukraine Kyiv"""
SOUNDS = """dog barks|cat meows|cow moos|duck quacks|sheep bleats|horse neighs|pig grunts|lion roars|frog croaks|bee buzzes
wolf howls|owl hoots|mouse squeaks|hen clucks"""
OPPOSITES = """hot cold|big small|up down|day night|fast slow|old young|happy sad|left right|open closed|wet dry|full empty
long short|hard soft|high low|rich poor|good bad|light dark|near far|early late|strong weak|clean dirty|true false"""
YOUNG = "dog puppy|cat kitten|cow calf|horse foal|sheep lamb|pig piglet|hen chick|duck duckling|bear cub|frog tadpole|goat kid"
PLAIN = """What color is the sky?|The sky is blue.
What color is grass?|Grass is green.
What color is snow?|Snow is white.
What color is a banana?|A banana is yellow.
What color is blood?|Blood is red.
How many days are in a week?|There are seven days in a week.
How many months are in a year?|There are twelve months in a year.
How many hours are in a day?|There are twenty-four hours in a day.
How many minutes are in an hour?|There are sixty minutes in an hour.
How many legs does a spider have?|A spider has eight legs.
How many legs does a dog have?|A dog has four legs.
How many wheels does a car have?|A car has four wheels.
What do bees make?|Bees make honey.
What do cows give us?|Cows give us milk.
What do plants need?|Plants need light, water and air.
Where do fish live?|Fish live in water.
What is ice?|Ice is frozen water.
What is the sun?|The sun is a star.
What is the moon?|The moon goes around the earth.
What planet do we live on?|We live on the earth.
What is the largest ocean?|The largest ocean is the Pacific.
What is the highest mountain?|The highest mountain is Mount Everest.
Who wrote Hamlet?|William Shakespeare wrote Hamlet.
Who painted the Mona Lisa?|Leonardo da Vinci painted the Mona Lisa.
Is water wet?|Yes, water is wet.
Is fire cold?|No, fire is hot."""
CHAT = [
    (["Hello!", "Hello", "Hi!", "Hi", "Hi there.", "Hey!", "Good morning.", "Good evening."], "Hello! How can I help you today?"),
    (["Thank you.", "Thanks!", "Thank you very much.", "Thanks a lot."], "You are welcome!"),
    (["How are you?", "How are you today?", "How is it going?"], "I am fine, thank you. How can I help you?"),
    (["Goodbye.", "Bye!", "See you later."], "Goodbye! Have a nice day."),
    (["Say hello.", "Say hi.", "Greet me."], "Hello!"),
    (["What is your name?", "Tell me your name.", "Introduce yourself."], "My name is Nano. I am a very small demo model."),
    (["Are you a robot?", "Are you a human?", "Are you a machine?"], "I am a small language model, not a human."),
    (["Tell me a joke.", "Do you know a joke?", "Make me laugh."], "Why did the duck cross the road? Because the hen was busy."),
    (["Write a poem.", "Write a short poem.", "Tell me a poem."], "The sun is warm, the sky is blue, the river sings a song for you."),
    (["Count from 1 to 10.", "Count to ten.", "Count to 10."], "1, 2, 3, 4, 5, 6, 7, 8, 9, 10")]
UNKNOWN = "I do not know that. I am a very small model."


def split(table):
    """'a b|c d' -> pairs; the first word is the key."""
    return [row.split(" ", 1) for line in table.split("\n") for row in line.split("|")]


def general():
    """(question phrasings, answer) of simple knowledge."""
    out = []
    for c, k in split(CAPITALS):
        out.append(([f"What is the capital of {c}?", f"Which city is the capital of {c}?", f"Name the capital of {c}.", f"What's the capital of {c}?"],
                    f"The capital of {c} is {k}."))
        out.append(([f"{k} is the capital of which country?", f"Which country has the capital {k}?"], f"{k} is the capital of {c}."))
    for a, s in split(SOUNDS):
        out.append(([f"What sound does a {a} make?", f"What does a {a} do when it is loud?"], f"A {a} {s}."))
    for a, b in split(YOUNG):
        out.append(([f"What is a young {a} called?", f"What do you call a baby {a}?"], f"A young {a} is called a {b}."))
    for pair in split(OPPOSITES):
        for a, b in (pair, pair[::-1]):
            out.append(([f"What is the opposite of {a}?", f"Tell me the opposite of {a}.", f"Opposite of {a}?"], f"The opposite of {a} is {b}."))
    for names, kind in ((words.DAYS, "day"), (words.MONTHS, "month")):
        for i, d in enumerate(names):
            nxt, prev = names[(i + 1) % len(names)], names[i - 1]
            out.append(([f"Which {kind} comes after {d}?", f"What is the {kind} after {d}?"], f"{nxt} comes after {d}."))
            out.append(([f"Which {kind} comes before {d}?", f"What is the {kind} before {d}?"], f"{prev} comes before {d}."))
    for i, w in enumerate(words.NUMBERS):
        out.append(([f"How do you write {i} as a word?", f"Write {i} as a word."], f"{i} is written as {w}."))
    for line in PLAIN.split("\n"):
        q, a = line.split("|")
        out.append(([q, q[:-1] + ", please?"], a))
    return out + CHAT


def cluster():
    """(question phrasings, answer) about the cluster."""
    out = []
    for line in TERMS:
        t, a = line.split("|")
        out.append(([f"What is {t}?", f"What does {t} mean?", f"Explain {t}.", f"Tell me about {t}."], a))
    for line in FIXES:
        t, a = line.split("|")
        out.append(([f"What do I do when {t}?", f"What should I do if {t}?", f"Help: {t}.", f"{t[0].upper()}{t[1:]}. What now?"], a))
    for line in HOWTO:
        t, a = line.split("|")
        out.append(([f"How do I {t}?", f"How can I {t}?", f"Please tell me how to {t}.", f"I want to {t}."], a))
    for line in FACTS:
        q, a = line.split("|")
        out.append(([q, q[:-1] + ", please?"], a))
    return out
