"""Writes the corpus of requests that errors of estimates are measured over: corpus.py pkg/estimate/testdata/corpus.jsonl.

Each line is a request's body, its kind, and how many tokens its prompt has: by OpenAI's tokenizer o200k_base, in the
chat template that many open models have (ChatML, tools as lines of JSON before the first message), and for an image a
token for each 28 by 28 pixels. The texts are made up of the sentences below, always the same ones for the same seed.
Needs the package bpe-openai (0.1.4 made what is committed), which brings the tokenizer with it:

    python3 -m venv venv && venv/bin/pip install bpe-openai==0.1.4
    venv/bin/python hack/corpus.py pkg/estimate/testdata/corpus.jsonl
"""

import base64
import json
import pathlib
import random
import struct
import sys
import zlib

import bpe_openai

REQUESTS = 12  # of each kind

TEXTS = {
    "English": """A weir is a low dam that holds a river back just enough to keep the level above it steady.
Could you explain to me in simple terms how that works?
I have tried restarting the server twice, and the error is still there.
Please summarise the following report in three sentences, and list all open questions at the end.
The committee met on Tuesday to discuss the budget for the coming year, but no decision was taken.
What is the difference between a mutex and a semaphore, and when would you use one or the other?
My grandmother used to bake bread every Saturday morning before anybody else was awake.
Write a polite e-mail to a customer whose parcel has been lost by the carrier.
You are a helpful assistant. Answer briefly, and say so if you do not know something.
In 1847 the bridge was destroyed by a flood; it was rebuilt in stone eleven years later.
Sure, here are some suggestions: take the earlier train, pack light, and book the hotel in advance.
Thanks, that was exactly what I needed! One more thing: how long does it usually take?""",
    "German": """Ein Wehr staut den Fluss gerade so weit auf, dass der Wasserstand darüber gleich bleibt.
Könnten Sie mir bitte in einfachen Worten erklären, wie das funktioniert?
Die Bundesregierung hat am Mittwoch einen Gesetzentwurf zur Änderung des Telekommunikationsgesetzes beschlossen.
Ich habe den Rechner schon zweimal neu gestartet, aber die Fehlermeldung erscheint immer noch.
Fassen Sie den folgenden Bericht in drei Sätzen zusammen und nennen Sie alle offenen Fragen.
Meine Großmutter hat jeden Samstagmorgen Brot gebacken, bevor alle anderen wach waren.
Worin besteht der Unterschied zwischen Arbeitslosengeld und Grundsicherung?
Schreiben Sie eine höfliche Nachricht an eine Kundin, deren Paket verloren gegangen ist.
Selbstverständlich, hier sind einige Vorschläge für Ihre Reise nach Süddeutschland.
Vielen Dank, das war sehr hilfreich! Wie lange dauert das normalerweise?""",
    "Russian": """Плотина удерживает реку ровно настолько, чтобы уровень воды оставался постоянным.
Объясните, пожалуйста, простыми словами, как это работает.
Я уже дважды перезапускал сервер, но ошибка всё равно появляется.
Кратко изложите следующий отчёт и перечислите все открытые вопросы.
Комитет собрался во вторник, чтобы обсудить бюджет на следующий год.
Моя бабушка каждую субботу пекла хлеб, пока все ещё спали.
Напишите вежливое письмо клиенту, посылка которого потерялась.
Спасибо, это именно то, что мне было нужно! Сколько времени это обычно занимает?""",
    "Chinese": """堰是一种低矮的水坝，它把河水稍微拦住，使上游的水位保持稳定。
请用简单的语言给我解释一下这是怎么工作的。
我已经重启了两次服务器，但是错误仍然存在。
请用三句话总结下面的报告，并在最后列出所有未解决的问题。
委员会于星期二开会讨论了明年的预算，但没有作出决定。
我的祖母每个星期六早上都会在大家醒来之前烤面包。
请给一位包裹丢失的客户写一封有礼貌的电子邮件。
谢谢，这正是我需要的！通常需要多长时间？""",
    "Japanese": """堰は川の水を少しだけせき止めて、上流の水位を一定に保つ低いダムです。
これがどのように動くのか、簡単な言葉で説明していただけますか。
サーバーを二回再起動しましたが、まだエラーが表示されます。
次の報告書を三つの文で要約し、最後に未解決の質問を挙げてください。
委員会は火曜日に来年の予算について話し合いましたが、何も決まりませんでした。
祖母は毎週土曜日の朝、みんなが起きる前にパンを焼いていました。
荷物が届かなかったお客様に丁寧なメールを書いてください。
ありがとうございます、とても助かりました。普通はどのくらいかかりますか。""",
    "Arabic": """السد المنخفض يحجز مياه النهر بالقدر الذي يكفي ليبقى مستواها ثابتا.
هل يمكنك أن تشرح لي كيف يعمل ذلك بكلمات بسيطة؟
لقد أعدت تشغيل الخادم مرتين ولكن الخطأ ما زال موجودا.
من فضلك لخص التقرير التالي في ثلاث جمل واذكر الأسئلة المفتوحة.
اجتمعت اللجنة يوم الثلاثاء لمناقشة ميزانية العام القادم ولم تتخذ قرارا.
كانت جدتي تخبز كل صباح سبت قبل أن يستيقظ الآخرون.
اكتب رسالة مهذبة إلى زبون ضاعت طروده.
شكرا، هذا ما كنت أحتاج إليه! كم من الوقت يستغرق ذلك عادة؟""",
}

CODE = [
    """func (q *Queue) Pop(now time.Time) (*Request, bool) {
	if len(q.items) == 0 {
		return nil, false
	}
	head := q.items[0]
	q.items = q.items[1:]
	q.virtual = max(q.virtual, head.finish)
	return head, true
}
""",
    """def moving_average(values, window):
    \"\"\"Yields the mean of each window of values.\"\"\"
    total = sum(values[:window])
    yield total / window
    for old, new in zip(values, values[window:]):
        total += new - old
        yield total / window
""",
    """SELECT tenant, date_trunc('hour', ended_at) AS hour, sum(prompt_tokens + 2 * completion_tokens) AS cost
FROM requests
WHERE ended_at >= now() - interval '7 days' AND status = 200
GROUP BY tenant, hour
ORDER BY hour DESC, cost DESC
LIMIT 100;
""",
    """export function useDebounce<T>(value: T, delayMs: number): T {
  const [debounced, setDebounced] = useState(value);
  useEffect(() => {
    const timer = setTimeout(() => setDebounced(value), delayMs);
    return () => clearTimeout(timer);
  }, [value, delayMs]);
  return debounced;
}
""",
    """Traceback (most recent call last):
  File "/srv/app/worker.py", line 214, in handle
    result = self.client.fetch(job["url"], timeout=self.timeout)
  File "/srv/app/client.py", line 88, in fetch
    raise FetchError(f"{url}: {response.status_code}")
app.errors.FetchError: https://example.com/items/4711: 503
""",
    """  - name: weir
    image: ghcr.io/example/weir:v0.3.0
    args: ["--pool-name=llama", "--pool-namespace=inference", "--metrics-port=9090"]
    resources:
      requests: { cpu: 500m, memory: 256Mi }
    readinessProbe:
      grpc: { port: 9003 }
      periodSeconds: 2
""",
]

TOOLS = [
    ("get_weather", "Returns the weather at a place.", {"city": "Name of the city", "unit": "celsius or fahrenheit"}),
    ("search_documents", "Searches the company's documents by meaning.", {"query": "What to search for", "limit": "How many"}),
    ("create_ticket", "Creates a ticket for the support team.", {"title": "One line", "body": "Markdown", "priority": "low to high"}),
    ("run_sql", "Runs a read-only SQL query against the warehouse.", {"query": "The statement", "timeout_seconds": "At most 60"}),
    ("send_email", "Sends an e-mail.", {"to": "Address", "subject": "Subject", "body": "Plain text", "cc": "Further addresses"}),
    ("read_file", "Reads a file of the repository.", {"path": "Relative path", "first_line": "From 1", "last_line": "Inclusive"}),
]

encoding = bpe_openai.get_encoding("o200k_base")


def count(text):
    return len(encoding.encode(text))


def said(rng, language, words):
    """A text of about so many sentences."""
    return " ".join(rng.choice(TEXTS[language].split("\n")) for _ in range(words))


def long(rng, most):
    """A length up to most, short ones more often."""
    return max(1, round(most ** rng.random()))


def chat(rng, texts, model="llama", **further):
    messages = [{"role": "system", "content": "You are a helpful assistant."}] if rng.random() < 0.5 else []
    for i in range(1 + 2 * rng.randrange(3)):
        messages.append({"role": ("user", "assistant")[i % 2], "content": texts()})
    return {"model": model, "messages": messages, "stream": rng.random() < 0.5, **further}


def in_language(language):
    return lambda rng: chat(rng, lambda: said(rng, language, long(rng, 12)), max_tokens=512)


def with_code(rng):
    def text():
        return said(rng, "English", 1) + "\n" + "\n".join("```\n" + rng.choice(CODE) + "```" for _ in range(long(rng, 8)))
    return chat(rng, text, temperature=0)


def with_tools(rng):
    tools = []
    for name, description, parameters in rng.sample(TOOLS, rng.randrange(2, 7)):
        properties = {k: {"type": "string", "description": d} for k, d in parameters.items()}
        tools.append({"type": "function", "function": {
            "name": name, "description": description,
            "parameters": {"type": "object", "properties": properties, "required": list(parameters)[:1]},
        }})
    return chat(rng, lambda: said(rng, "English", long(rng, 8)), tools=tools, tool_choice="auto")


def completion(rng):
    return {"model": "llama", "prompt": said(rng, "English", long(rng, 80)), "max_tokens": 64}


def picture(rng):
    """A gray PNG of 224 by 224 pixels, which does not compress well."""
    rows = b"".join(b"\0" + rng.randbytes(224 // 8) for _ in range(224))
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 224, 224, 1, 0, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


def with_image(rng):
    request = chat(rng, lambda: said(rng, "English", long(rng, 8)))
    url = "data:image/png;base64," + base64.b64encode(picture(rng)).decode()
    last = request["messages"][-1]
    last["content"] = [{"type": "text", "text": last["content"]}, {"type": "image_url", "image_url": {"url": url}}]
    return request


def tokens(body):
    """The length of the prompt, as an engine with this template would count it."""
    if "prompt" in body:
        return count(body["prompt"])
    total = 0
    if "tools" in body:
        total += count("# Tools\n" + "\n".join(json.dumps(tool) for tool in body["tools"]) + "\n")
    for message in body["messages"]:
        total += 2 + count(message["role"] + "\n") + count("\n")  # <|im_start|>ROLE\n … <|im_end|>\n
        content = message["content"]
        for part in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            total += count(part["text"]) if part["type"] == "text" else (224 // 28) ** 2
    return total + 1 + count("assistant\n")


KINDS = {
    **{f"chat, {language}": in_language(language) for language in TEXTS},
    "chat with code": with_code,
    "chat with tools": with_tools,
    "chat with an image": with_image,
    "completion": completion,
}

rng = random.Random(12)
with pathlib.Path(sys.argv[1]).open("w", encoding="utf-8") as out:
    for _ in range(REQUESTS):
        for kind, make in KINDS.items():
            body = make(rng)
            # Python's clients escape what is not ASCII; those in JavaScript and Go do not.
            text = json.dumps(body, ensure_ascii=rng.random() < 0.5)
            out.write(json.dumps({"kind": kind, "tokens": tokens(body), "body": text}, ensure_ascii=False) + "\n")
