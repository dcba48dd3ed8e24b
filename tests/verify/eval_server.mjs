// A server that solves every task of `tandem eval`, with one switch per way to be wrong. One word is
// one token.
import http from 'node:http';

const count = (text) => text.split(/\s+/).filter(Boolean).length;
const call = (name, args) => ({ name, arguments: JSON.stringify(args) });

// What the last message asks for, as its first words -> the calls that answer it.
const calls = [
  [/^What is the weather in Paris/, () => [call('get_weather', { city: 'Paris' })]],
  [/^What is the weather in Oslo/, () => [call('get_weather', { city: 'Oslo', unit: 'fahrenheit' })]],
  [/^Give me the forecast for Vienna/, () => [call('get_forecast', { city: 'Vienna', days: 3.0 })]],
  [/^Send (\S+) exactly this message: (.*)$/, (m) => [call('send_message', { text: m[2], to: m[1] })]],
  [/^Add ([\d.-]+) and ([\d.-]+) with/, (m) => [call('add_numbers', { a: Number(m[1]), b: Number(m[2]) })]],
  [/^Create the event Review/, () => [call('create_event', { title: 'Review', date: '2026-03-14', guests: ['Ben', 'Clara'] })]],
  [/^Create the event Lunch/, () => [call('create_event', { title: 'Lunch', date: '2026-05-02', place: { floor: 2, name: 'Cafe Blue' } })]],
  [/^Which files/, () => [call('list_files', {})]],
  [/^Run exactly this command: (.*)$/, (m) => [call('run_command', { command: m[1] })]],
  [/in Rome, and what is it in Lima/, () => [call('get_weather', { city: 'Lima' }), call('get_weather', { city: 'Rome' })]],
  [/^At once: list the files/, () => [call('list_files', {}), call('get_weather', { city: 'Cairo' })]],
  [/weather in Tokyo/, () => [call('get_weather', { city: 'Tokyo' })]],
  [/weather in Athens/, () => [call('get_weather', { city: 'Athens', unit: 'celsius' })]],
  [/^Forecast for Helsinki/, () => [call('get_forecast', { city: 'Helsinki', days: 5 })]],
];

function toolCalls(messages) {
  const last = messages.at(-1);
  if (last.role === 'tool') {
    return messages[0].content.includes('Finn') ? [call('send_message', { to: 'Finn', text: '31' })] : [];
  }
  for (const [pattern, make] of calls) {
    const match = last.content.match(pattern);
    if (match) return make(match);
  }
  return [];
}

function asJson(text) {
  let m = text.match(/^(\w+) is (\d+) years old\. Return/);
  if (m) return { name: m[1], age: Number(m[2]) };
  m = text.match(/^(\w+) is (\d+) years old and lives in (\w+)/);
  if (m) return { home: { city: m[3] }, person: { name: m[1], age: Number(m[2]) } };
  m = text.match(/^(\w+) came first and (\w+) came second/);
  if (m) return { winners: [m[1], m[2]] };
  m = text.match(/^The shop in (\w+) is closed/);
  return { city: m[1], state: 'closed' };
}

function solve(text) {
  const question = text.slice(text.lastIndexOf('\n') + 1);
  if (question.includes('secret code')) return text.match(/The secret code is (\d+)/)[1];
  const box = question.match(/code of the (\w+ box)\?/);
  if (box) return text.match(new RegExp(`The code of the ${box[1]} is (\\d+)`))[1];
  if (question.includes('all three codes')) return [...text.matchAll(/copper box is (\d+)/g)].map((m) => m[1]).join(', ');
  const name = question.match(/value of (\w+)\?/);
  if (name) {
    const values = {};
    for (const m of text.matchAll(/Set (\w+) to (?:the value of )?(\w+)\./g)) values[m[1]] = values[m[2]] ?? m[2];
    return values[name[1]];
  }
  const sum = question.match(/What is (\d+) \+ (\d+)\?/);
  return sum ? `It is ${Number(sum[1]) + Number(sum[2])}.` : 'Bonjour.';
}

export class EvalServer {
  constructor(fault = '') {
    this.fault = fault;
    this.lengths = [];
    this.server = http.createServer(async (request, response) => {
      let text = '';
      for await (const part of request) text += part;
      this.answer(request.url, text ? JSON.parse(text) : null, response);
    });
  }

  async listen() {
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    return `http://127.0.0.1:${this.server.address().port}`;
  }

  close() {
    this.server.closeAllConnections();
    this.server.close();
  }

  answer(path, body, response) {
    const send = (status, value) => {
      response.writeHead(status, { 'content-type': 'application/json' });
      response.end(JSON.stringify(value));
    };
    if (path === '/v1/models') return send(200, { data: [{ id: 'solver' }] });
    if (path === '/tokenize') {
      if (this.fault === 'no_tokenize') return send(404, {});
      return send(200, { count: count(body.messages[0].content) });
    }
    if (this.fault === 'breaks') return send(500, { error: { message: 'broken' } });
    const last = body.messages.at(-1).content;
    if (last.includes('secret code')) this.lengths.push(count(last));
    const message = { role: 'assistant', content: this.text(body, last) };
    if (body.tools && this.fault !== 'never_calls') {
      const list = toolCalls(body.messages);
      if (this.fault === 'wrong_argument' && list[0]?.name === 'get_forecast') list[0].arguments = '{"city": "Bonn", "days": 1}';
      if (this.fault === 'one_call_only') list.length = Math.min(list.length, 1);
      if (list.length > 0) {
        message.content = null;
        message.tool_calls = list.map((f, i) => ({ id: `call_${i}`, type: 'function', function: f }));
      }
    }
    send(200, { choices: [{ index: 0, message, finish_reason: 'stop', logprobs: body.logprobs ? this.logprobs() : null }], usage: { prompt_tokens: count(last) } });
  }

  text(body, last) {
    if (body.response_format) {
      const value = asJson(last);
      if (this.fault === 'json_extra_key') value.extra = 1;
      if (this.fault === 'json_wrong_value') for (const key of Object.keys(value)) if (typeof value[key] === 'string') value[key] = key === 'state' ? 'open' : 'x';
      return JSON.stringify(value);
    }
    if (this.fault === 'forgets' && body.messages.length === 1 && last.length > 400) return '12345';
    if (this.fault === 'forgets_the_start' && last.slice(0, last.length / 10).includes('secret code is')) return '12345';
    if (this.fault === 'off_by_one' && / \+ /.test(last)) return '1';
    return solve(last);
  }

  // The answer "16" of the recorded vector, or another one.
  logprobs() {
    const best = this.fault === 'other_token' ? '17' : '16';
    const top = [{ token: best, logprob: -0.25 }, { token: best === '16' ? '17' : '16', logprob: -1.5 }];
    return { content: [{ ...top[0], top_logprobs: this.fault === 'other_list' ? [top[0], { token: 'no', logprob: -2 }] : top }] };
  }
}
