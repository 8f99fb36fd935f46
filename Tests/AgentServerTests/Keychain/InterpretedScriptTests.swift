import LinuxSystem
import Testing

@testable import AgentServer

/// Which word of a command line is the script. What is not understood is none: then it is the interpreter itself.
@Suite struct InterpretedScriptTests {
    /// A command line, and its script by the documentation of the interpreter.
    private static let lines: [(String, String?)] = [
        ("python3 /a.py", "/a.py"), ("python3.11 -u /a.py -c x", "/a.py"), ("python3 -Wonce /a.py", "/a.py"),
        ("python3 -W once /a.py", "/a.py"), ("python3 -Ximporttime /a.py", "/a.py"), ("python3 -BWonce /a.py", "/a.py"),
        ("python3 -BW once /a.py", "/a.py"), ("python3 -OO /a.py", "/a.py"), ("python3 -m http.server", nil),
        ("python3 -mhttp.server /a.py", nil), ("python3 -c pass /a.py", nil), ("python3 -Bc pass /a.py", nil),
        ("python3 -cpass /a.py", nil), ("python3 -", nil), ("python3", nil), ("python3 -W", nil),
        ("python3 --check-hash-based-pycs always /a.py", "/a.py"), ("python3 --unheard-of /a.py", nil),
        ("python3 -- /a.py", "/a.py"), ("python-config /a.py", nil), ("pythonista /a.py", nil),
        ("pypy3 /a.py", "/a.py"),
        ("node /a.js", "/a.js"), ("node -r dotenv /a.js", "/a.js"), ("node --require=dotenv /a.js", "/a.js"),
        ("node --no-warnings --inspect /a.js", "/a.js"), ("node -e 1 /a.js", nil), ("node -pe 1 /a.js", nil),
        ("node --eval=1 /a.js", nil), ("node --test /a.js", nil), ("nodejs /a.js", "/a.js"),
        ("ruby /a.rb", "/a.rb"), ("ruby -rx /a.rb", "/a.rb"), ("ruby -r x /a.rb", "/a.rb"), ("ruby -W0 /a.rb", "/a.rb"),
        ("ruby -e x /a.rb", nil), ("ruby -ne x /a.rb", nil), ("ruby -S tool", nil), ("ruby3.1 -w /a.rb", "/a.rb"),
        ("perl /a.pl", "/a.pl"), ("perl -Mfeature=say /a.pl", "/a.pl"), ("perl -w -I lib /a.pl", "/a.pl"),
        ("perl -Ilib /a.pl", "/a.pl"), ("perl -lne x /a.pl", nil), ("perl -0777 -ne x", nil),
        ("perl -i.bak /a.pl", "/a.pl"), ("perl -E x /a.pl", nil), ("perl -Mre=eval -e x", nil),
        ("bash /a.sh", "/a.sh"), ("bash -euo pipefail /a.sh", "/a.sh"), ("bash -o pipefail -x /a.sh", "/a.sh"),
        ("bash +x /a.sh", "/a.sh"), ("bash +O extglob /a.sh", "/a.sh"), ("bash --rcfile /r -i /a.sh", "/a.sh"),
        ("bash --norc /a.sh", "/a.sh"), ("bash -c x /a.sh", nil), ("bash -lc x", nil), ("sh -s /a.sh", nil),
        ("bash -o", nil), ("dash /a.sh", "/a.sh"), ("zsh -f /a.sh", "/a.sh"), ("sh -- /a.sh", "/a.sh"),
        ("php /a.php", "/a.php"), ("php -d a=b /a.php", "/a.php"), ("php -da=b /a.php", "/a.php"), ("php -r x", nil),
        ("php -S localhost:80 /a.php", nil), ("php8.2 /a.php", "/a.php"),
        ("lua5.4 /a.lua", "/a.lua"), ("lua -l x /a.lua", "/a.lua"), ("lua -lx /a.lua", "/a.lua"),
        ("lua -e x /a.lua", nil),
        ("java -jar /a.jar", "/a.jar"), ("java -Xmx1g -Da=b -jar /a.jar", "/a.jar"),
        ("java -cp /b.jar -jar /a.jar", "/a.jar"), ("java -cp /b.jar Main", nil), ("java /A.java", nil),
        ("java -m x/y -jar /a.jar", nil), ("java @args -jar /a.jar", nil),
        ("swift /a.swift", nil), ("app /a.py", nil),
    ]

    @Test(arguments: lines) func theScriptIsTheWordThatTheInterpreterTakesForIt(_ line: String, _ script: String?) {
        let words = line.split(separator: " ").map { FilePath(unchecked: Array($0.utf8)) }
        #expect(InterpretedScript.script(words[0], words.dropFirst())?.text == script, "\(line)")
    }
}
