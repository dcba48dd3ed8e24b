// The answers of the scripted server, by what the conversation asks.

// What the scripted model says to a conversation.
export function think(messages, tools, format, wantsThinking) {
  const texts = messages.filter((m) => m.role === 'user').map((m) => m.content);
  const last = texts.at(-1) ?? '';
  const out = { reasoning: '', text: 'Hello there.', call: null };
  if (tools.length > 0) {
    const name = tools[0].name;
    out.call = { name, arguments: name === 'ping' ? '{}' : '{"city": "Paris"}' };
    out.text = '';
    return out;
  }
  if (wantsThinking) out.reasoning = 'Plainly one word is wanted, so that is the whole answer.';
  const exact = [...last.matchAll(/eply with exactly (\w+)\./g)].at(-1);
  const secret = texts.join('\n').match(/secret code is (\d+)/);
  if (last.includes('What is the secret code?')) out.text = secret ? secret[1] : 'unknown';
  else if (exact) out.text = exact[1];
  else if (last.includes('integer value 7')) out.text = '{"value": 7}';
  else if (last.includes('Tom is 12')) out.text = '{"name": "Tom", "age": 12}';
  else if (last.startsWith('Count from 1 to 20')) {
    out.text = Array.from({ length: 20 }, (_, i) => i + 1).join(', ');
  } else if (last.includes('long numbered list')) out.text = '';
  return out;
}
