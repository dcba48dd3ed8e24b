// Runs `tandem verify` against the perfect server (all green) and against every fault (exactly the
// gate that names it is red). Usage: node run_matrix.mjs TANDEM [--docs FILE | --write-docs FILE]
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { faults, lacks } from './faults.mjs';
import { ScriptedServer } from './scripted_server.mjs';

const [tandem, docsMode, docsFile] = process.argv.slice(2);
const folder = mkdtempSync(join(tmpdir(), 'verify-'));

async function verify(fault, ...flags) {
  const server = new ScriptedServer(fault);
  const url = await server.listen();
  const file = join(folder, `${fault || 'perfect'}.json`);
  const child = spawn(
    tandem,
    ['verify', url, '--model', 'scripted', '--json', file, '--prefix-tokens', '4700', '--turns', '3', '--recall', '300,600', '--timeout-ms', '20000', '--junit', `${file}.xml`, '--html', `${file}.html`, ...flags],
    { stdio: 'ignore' },
  );
  const code = await new Promise((resolve) => child.on('exit', resolve));
  server.close();
  const report = JSON.parse(readFileSync(file, 'utf8'));
  const red = Object.entries(report.gates).filter(([, gate]) => gate.status === 'FAIL').map(([name]) => name);
  const junit = readFileSync(`${file}.xml`, 'utf8');
  const html = readFileSync(`${file}.html`, 'utf8');
  return { code, red, report, junit, html };
}

// A red gate must show, in every report, what was asked, what was expected and what came.
function evidenceGap(gateName, { report, junit, html }) {
  const gate = report.gates[gateName];
  const failed = gate.assertions.filter((a) => !a.ok);
  if (failed.length === 0) return gate.reason.includes('request: ') ? '' : `no request in the reason: ${gate.reason}`;
  for (const { name, request, expected, got } of failed) {
    if (!request || !expected || !got) return `${name} lacks request, expected or got`;
    if (!junit.includes(`<failure message="${name}">request: `)) return `${name} is no failure in the JUnit file`;
    if (!html.includes(`FAIL</span> ${name}<pre>request:  `)) return `${name} has no evidence in the page`;
  }
  return /<(script|link|img)|src=/.test(html) ? 'the page is not self-contained' : '';
}

function page() {
  const gaps = lacks.map(({ name, gates, reason }) => `| ${name} | ${gates.join(', ')} | ...${reason}... |`).join('\n');
  const rows = faults.map(({ name, gate }) => `| ${name} | ${gate} |`).join('\n');
  return `# What \`tandem verify\` catches

\`tandem verify URL\` runs against any OpenAI-compatible server and exits 0 only if every required gate passes.
\`tandem verify --list\` names the gates. Each of the ${faults.length} faults below is built into a scripted server, and the
test \`verify_matrix\` requires that exactly the named gate turns red for it, and that the server without a fault is all
green. A red gate prints the request, what was expected and what came, in the terminal and in every report.
The tables are written by \`node tests/verify/run_matrix.mjs TANDEM --write-docs docs/VERIFIER.md\`.

| fault | gate that names it |
|---|---|
${rows}

A server may lack what a gate needs. Then the gate is skipped, with the reason, and that is no pass:
\`--require-all\` makes it a failure. Exit codes: 0 passed, 1 failed, 2 wrong arguments, 3 nothing answers at the
address, 130 interrupted.

| server without | skipped gates | the reason says |
|---|---|---|
${gaps}
`;
}

let failed = 0;
const complain = (text) => {
  ++failed;
  console.log(text);
};

const perfect = await verify('');
if (perfect.red.length > 0 || perfect.code !== 0) {
  complain(`perfect server: red gates ${perfect.red.join(', ')}, exit ${perfect.code}`);
  for (const gate of perfect.red) {
    const { reason, assertions } = perfect.report.gates[gate];
    console.log(gate, reason, JSON.stringify(assertions.filter((a) => !a.ok), null, 1));
  }
}

const queue = [...faults];
async function worker() {
  for (let next = queue.shift(); next; next = queue.shift()) {
    const found = await verify(next.name);
    const { code, red } = found;
    const required = next.gate !== 'recall';
    if (red.join() !== next.gate || (code === 0) === required) {
      complain(`${next.name}: expected ${next.gate}, red: ${red.join(', ') || 'none'}, exit ${code}`);
    } else {
      const gap = evidenceGap(next.gate, found);
      if (gap) complain(`${next.name}: ${gap}`);
    }
  }
}
await Promise.all(Array.from({ length: 6 }, worker));

for (const { name, gates, reason } of lacks) {
  const { code, red, report } = await verify(name);
  const skipped = Object.entries(report.gates).filter(([, gate]) => gate.status === 'SKIP');
  const named = skipped.every(([, gate]) => gate.reason.includes(reason));
  if (code !== 0 || red.length > 0 || !named || skipped.map(([gate]) => gate).sort().join() !== [...gates].sort().join()) {
    complain(`${name}: expected ${gates} to be skipped (${reason}); got exit ${code}, red ${red}, ${JSON.stringify(skipped)}`);
  }
}
const strict = await verify('no_drafts', '--require-all');
if (strict.code !== 1) complain(`--require-all: exit ${strict.code} although a gate was skipped`);

async function exitCode(...words) {
  const child = spawn(tandem, ['verify', ...words], { stdio: 'ignore' });
  return new Promise((resolve) => child.on('exit', resolve));
}
// A signal gives up a request that nobody answers, and the report is kept.
async function interrupt(signal) {
  const server = new ScriptedServer('silent');
  const file = join(folder, `${signal}.json`);
  const silent = new Promise((resolve) => (server.onSilence = resolve));
  const child = spawn(tandem, ['verify', await server.listen(), '--json', file], { stdio: 'ignore' });
  const done = new Promise((resolve) => child.on('exit', resolve));
  await silent;
  child.kill(signal);
  const code = await done;
  server.close();
  const { gates } = JSON.parse(readFileSync(file, 'utf8'));
  const kept = gates['catalog.models'].status === 'PASS' && gates['catalog.health'].reason === 'interrupted';
  if (code !== 130 || !kept) complain(`${signal}: exit ${code}, ${JSON.stringify(gates['catalog.health'])}`);
}
await interrupt('SIGINT');
await interrupt('SIGTERM');
const closed = new ScriptedServer();
const closedUrl = await closed.listen();
closed.close();
for (const [words, expected] of [[[closedUrl], 3], [[closedUrl, '--model', 'scripted'], 3], [['nowhere'], 2]]) {
  const code = await exitCode(...words);
  if (code !== expected) complain(`verify ${words.join(' ')}: exit ${code}, expected ${expected}`);
}

if (docsMode === '--write-docs') writeFileSync(docsFile, page());
if (docsMode === '--docs' && readFileSync(docsFile, 'utf8') !== page()) {
  complain(`${docsFile} does not match tests/verify/faults.mjs; write it again with --write-docs`);
}
rmSync(folder, { recursive: true });
console.log(`${faults.length + lacks.length + 7 - failed} passed, ${failed} failed`);
process.exit(failed === 0 ? 0 : 1);
