//! One-line templates through every function, with the results of Go and sprig 2.22.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::testing::with_data;
use crate::{Limits, Template};

use super::{REFUSED, functions};

/// The names of sprig's text functions, all of them.
const NAMES: &str = "abbrev abbrevboth add add1 adler32sum ago append atoi b32dec b32enc b64dec b64enc base biggest buildCustomCert camelcase cat ceil clean coalesce compact concat contains date dateInZone dateModify date_in_zone date_modify decryptAES deepCopy deepEqual default derivePassword dict dir div empty encryptAES env expandenv ext fail first float64 floor genCA genPrivateKey genSelfSignedCert genSignedCert getHostByName has hasKey hasPrefix hasSuffix hello htmlDate htmlDateInZone indent initial initials int int64 isAbs join kebabcase keys kindIs kindOf last list lower max merge mergeOverwrite min mod mul nindent nospace now omit pick pluck plural prepend push quote randAlpha randAlphaNum randAscii randNumeric regexFind regexFindAll regexMatch regexReplaceAll regexReplaceAllLiteral regexSplit repeat replace rest reverse round semver semverCompare set sha1sum sha256sum shuffle slice snakecase sortAlpha split splitList splitn squote sub substr swapcase ternary title toDate toDecimal toJson toPrettyJson toString toStrings trim trimAll trimPrefix trimSuffix trimall trunc tuple typeIs typeIsLike typeOf uniq unixEpoch unset until untilStep untitle upper urlJoin urlParse uuidv4 values without wrap wrapWith";

/// Templates and what they print, or the end of their error: the function and the cause.
const CASES: &[(&str, Result<&str, &str>)] = &[
    ("{{ hello }}", Ok("Hello!")),
    (
        r#"{{ trim "  a b\n" }}|{{ trimAll "$" "$5$" }}|{{ trimall "-x" "x-a-x" }}|{{ trimSuffix "c" "abc" }}|{{ trimPrefix "é" "éa" }}"#,
        Ok("a b|5|a|ab|a"),
    ),
    (
        r#"{{ upper "ßŉǆᾳi" }}|{{ lower "ÀİΣ" }}|{{ title "hello wORLD foo_bar a-b ǆ" }}|{{ untitle "Hello World ÀB" }}|{{ swapcase "This Is a Test ǆ" }}"#,
        Ok("ßŉǄᾼI|àiσ|Hello WORLD Foo_bar A-B ǅ|hello world àB|tHIS iS A tEST ǅ"),
    ),
    (
        r#"{{ snakecase "FirstName" }}|{{ snakecase "HTTP20xOK" }}|{{ snakecase "Bld4Floor3rd" }}|{{ kebabcase "GO PATH-x" }}|{{ kebabcase "http2xx" }}"#,
        Ok("first_name|http_20x_ok|bld4_floor_3rd|go-path-x|http-2xx"),
    ),
    (
        r#"{{ camelcase "some_words" }}|{{ camelcase "_complex__case_" }}|{{ camelcase "http-server x" }}|{{ camelcase "__" }}"#,
        Ok("SomeWords|_Complex_Case_|HttpServerX|___"),
    ),
    (r#"{{ initials "First Try éa" }}|{{ nospace " h e l\tl o" }}|{{ nospace "é x" }}"#, Ok("FTÃ|hello|Ã©x")),
    (r#"{{ trunc 5 "hello world" }}|{{ trunc 1 "é" }}|{{ trunc 0 "x" }}"#, Ok("hello|\u{fffd}|")),
    (r#"{{ trunc -1 "x" }}"#, Err("trunc: runtime error: slice bounds out of range [:-1]")),
    (
        r#"{{ substr 0 5 "hello world" }}|{{ substr -1 2 "abc" }}|{{ substr 1 -1 "abc" }}|{{ substr 1 99 "abc" }}"#,
        Ok("hello|ab|bc|bc"),
    ),
    (r#"{{ substr 5 2 "hello" }}"#, Err("substr: runtime error: slice bounds out of range [5:2]")),
    (r#"{{ substr -1 9 "hello" }}"#, Err("substr: runtime error: slice bounds out of range [:9] with length 5")),
    (r#"{{ repeat 3 "ab" }}|{{ repeat 0 "x" }}"#, Ok("ababab|")),
    (r#"{{ repeat -1 "a" }}"#, Err("repeat: strings: negative Repeat count")),
    (r#"{{ contains "cat" "catch" }} {{ hasPrefix "" "x" }} {{ hasSuffix "é" "caé" }}"#, Ok("true true true")),
    (
        r#"{{ quote "a\"b\n" 1 nil true }}|{{ squote "a" 1.0 nil }}|{{ cat "a" nil 1 (list 1 2) }}"#,
        Ok(r#""a\"b\n" "1" "true"|'a' '1'|a 1 [1 2]"#),
    ),
    (r#"{{ indent 2 "a\nb\n" }}|{{ nindent 1 "x" }}"#, Ok("  a\n  b\n  |\n x")),
    (r#"{{ indent -1 "a" }}"#, Err("indent: strings: negative Repeat count")),
    (r#"{{ replace "a" "bb" "banana" }}|{{ replace "" "-" "ab" }}"#, Ok("bbbnbbnbb|-a-b-")),
    (r#"{{ plural "one" "many" 1 }} {{ plural "one" "many" 0 }}"#, Ok("one many")),
    (
        r#"{{ toString nil }}|{{ toString 1.0 }}|{{ toString (dict "b" 1 "a" (list)) }}|{{ toStrings (list 1 nil "a" 2.5) }}|{{ toStrings nil }}"#,
        Ok("<nil>|1|map[a:[] b:1]|[1 a 2.5]|[]"),
    ),
    (
        r#"{{ join "-" (list 1 nil "a") }}|{{ join "," nil }}|{{ join "," 5 }}|{{ join "," (until 3) }}"#,
        Ok("1-a||5|0,1,2"),
    ),
    (
        r#"{{ split "," "a,b" }}|{{ (split "$" "x$y")._1 }}|{{ splitn "/" 2 "a/b/c" }}|{{ splitList "" "aé" }}|{{ splitn "" 2 "abc" }}|{{ splitn "," 0 "a" }}"#,
        Ok("map[_0:a _1:b]|y|map[_0:a _1:b/c]|[a é]|map[_0:a _1:bc]|map[]"),
    ),
    (
        r#"{{ sortAlpha (list "b" "a" 3 "é" "Z") }}|{{ sortAlpha nil }}|{{ sortAlpha 5 }}"#,
        Ok("[3 Z a b é]|[<nil>]|[5]"),
    ),
    (
        r#"{{ atoi "12" }} {{ atoi "x" }} {{ atoi "99999999999999999999" }} {{ int64 "7" }} {{ int64 "7.5" }} {{ int 3.99 }} {{ int64 1e300 }} {{ int nil }} {{ int true }}"#,
        Ok("12 0 9223372036854775807 7 0 3 -9223372036854775808 0 1"),
    ),
    (
        r#"{{ float64 "1e3" }} {{ float64 "inf" }} {{ float64 "x" }} {{ float64 "0x1p-2" }} {{ float64 "1_000" }} {{ toDecimal 777 }} {{ toDecimal "9" }}"#,
        Ok("1000 +Inf 0 0.25 1000 511 0"),
    ),
    (
        r#"{{ add 1 "2" 3.9 }} {{ add }} {{ add1 "x" }} {{ sub 1 5 }} {{ mul 2 3 -4 }} {{ div -7 2 }} {{ mod -7 2 }} {{ max 1 5 3 }} {{ min 1 -5 "x" }} {{ biggest 2 }}"#,
        Ok("6 0 1 -4 -24 -3 -1 5 -5 2"),
    ),
    ("{{ add 9223372036854775807 1 }} {{ div 1 2 }} {{ mul 4611686018427387904 4 }}", Ok("-9223372036854775808 0 0")),
    ("{{ div 1 0 }}", Err("div: runtime error: integer divide by zero")),
    (r#"{{ mod 1 "x" }}"#, Err("mod: runtime error: integer divide by zero")),
    (
        r#"{{ ceil 1.1 }} {{ floor -1.1 }} {{ round 123.5555 3 }} {{ round 123.5555 3 0.6 }} {{ round -1.5 0 }} {{ round 10 400 }} {{ round "1.005" 2 }} {{ round 1 23 }}"#,
        Ok("2 -2 123.556 123.555 -2 NaN 1 1"),
    ),
    (
        "{{ until 3 }} {{ until -2 }} {{ until 0 }} {{ untilStep 0 10 3 }} {{ untilStep 3 0 -1 }} {{ untilStep 0 5 0 }}",
        Ok("[0 1 2] [0 -1] [] [0 3 6 9] [3 2 1] []"),
    ),
    (
        r#"{{ default "d" "" }} {{ default "d" 0 }} {{ default "d" "x" }} {{ default "d" }} {{ empty (list) }} {{ empty . }} {{ coalesce 0 "" "x" }} {{ coalesce nil }} {{ ternary 1 2 true }} {{ ternary 1 2 false }}"#,
        Ok("d d x d true false x <no value> 1 2"),
    ),
    (
        r#"{{ toJson (dict "b" (list 1 2.0 1e21 1e-7 nil true) "a" "<é&\u2028\x01>") }}|{{ toPrettyJson (dict "a" (list) "b" (list 1 (dict))) }}"#,
        Ok(
            "{\"a\":\"\\u003cé\\u0026\\u2028\\u0001\\u003e\",\"b\":[1,2,1e+21,1e-7,null,true]}|{\n  \"a\": [],\n  \"b\": [\n    1,\n    {}\n  ]\n}",
        ),
    ),
    (
        r#"{{ toJson (rest (list)) }} {{ toJson (rest (list 1)) }} {{ toJson (regexFindAll "x" "y" -1) }} {{ toJson (semver "v1.2") }} {{ toJson (list (float64 "nan")) }}"#,
        Ok(r#"null [] null "1.2.0" "#),
    ),
    (
        r#"{{ typeOf 1 }} {{ typeOf nil }} {{ typeOf (add 1) }} {{ typeOf (until 1) }} {{ typeOf (splitList "" "") }} {{ typeOf (dict) }} {{ typeOf (split "" "") }} {{ typeOf (semver "1.0.0") }} {{ typeOf . }} {{ kindOf nil }} {{ kindOf (semver "1.0.0") }} {{ kindIs "map" (dict) }} {{ typeIsLike "semver.Version" (semver "1.0.0") }} {{ typeIs "semver.Version" (semver "1.0.0") }}"#,
        Ok(
            "int <nil> int64 []int []string map[string]interface {} map[string]string *semver.Version scheduler.dataType invalid ptr true true false",
        ),
    ),
    (
        r#"{{ deepEqual (list 1 "a") (list 1 "a") }} {{ deepEqual 1 1.0 }} {{ deepEqual (dict "a" nil) (dict) }} {{ deepEqual (list) (rest (list)) }} {{ deepEqual nil nil }}"#,
        Ok("true false false false true"),
    ),
    (
        r#"{{ base "/a/b.txt" }} {{ base "" }} {{ base "//" }} {{ dir "/a/b" }} {{ dir "x" }} {{ clean "a/../../b/./c//" }} {{ clean "/.." }} {{ ext "a.b/c.tar.gz" }} {{ ext "a.b/c" }} {{ isAbs "/a" }}"#,
        Ok("b.txt . / /a . ../b/c / .gz  true"),
    ),
    (
        r#"{{ b64enc "héllo" }} {{ b64dec "aMOpbGxv" }} {{ b64dec "YQ" }} {{ b64dec "Y=Q=" }} {{ b32enc "a" }} {{ b32dec "ME======" }} {{ b32dec "me" }}"#,
        Ok(
            "aMOpbGxv héllo illegal base64 data at input byte 0 illegal base64 data at input byte 1 ME====== a illegal base32 data at input byte 0",
        ),
    ),
    (
        r#"{{ sha1sum "a" }} {{ sha256sum "" }} {{ adler32sum "Wikipedia" }}"#,
        Ok(
            "86f7e437faa5a7fce15d1ddcb9eaeaea377667b8 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 300286872",
        ),
    ),
    (
        r#"{{ decryptAES "k" "" }}{{ decryptAES "key" "30tEfhuJSVRhpG97XCuWgz2okj7L8vQ1s6V9zVUPeDQ=" }}"#,
        Err("decryptAES: runtime error: slice bounds out of range [:-34]"),
    ),
    (
        r#"{{ decryptAES "k" "aaaa" }}"#,
        Err("decryptAES: runtime error: slice bounds out of range [:16] with capacity 3"),
    ),
    (
        r#"{{ list 1 "a" nil }} {{ tuple }} {{ append (list 1) 2 }} {{ push (until 2) "x" }} {{ prepend (list 1) 0 }} {{ first (list 1 2) }} {{ last (list 1 2) }} {{ rest (list 1 2) }} {{ initial (list 1 2) }} {{ reverse (list 1 2) }} {{ concat (list 1) (until 2) }}"#,
        Ok("[1 a <nil>] [] [1 2] [0 1 x] [0 1] 1 2 [2] [1] [2 1] [1 0 1]"),
    ),
    (
        r#"{{ compact (list 0 1 "" "a" nil (list)) }} {{ uniq (list 1 1 "1" 1.0 (list 1) (list 1)) }} {{ without (list 1 2 3) 2 "3" }} {{ has 1 (list 1) }} {{ has "1" (list 1) }} {{ has 1 nil }} {{ slice (list 1 2 3) 1 2 }} {{ slice (list 1 2 3) }} {{ slice (list) 5 }}"#,
        Ok("[1 a] [1 1 1 [1]] [1 3] true false false [2] [1 2 3] <no value>"),
    ),
    ("{{ first nil }}", Err("first: runtime error: invalid memory address or nil pointer dereference")),
    (r#"{{ first "x" }}"#, Err("first: Cannot find first on type string")),
    ("{{ reverse 5 }}", Err("reverse: Cannot find reverse on type int")),
    ("{{ slice (list 1 2) 0 5 }}", Err("slice: reflect.Value.Slice: slice index out of bounds")),
    (r#"{{ slice "abc" 1 }}"#, Err("slice: list should be type of slice or array but string")),
    (r#"{{ concat (list) "x" }}"#, Err("concat: Cannot concat type string as list")),
    (
        r#"{{ dict "a" 1 "b" }} {{ dict 1 2 }} {{ hasKey (dict "a" nil) "a" }} {{ pluck "a" (dict "a" 1) (dict "b" 2) (dict "a" 3) }} {{ keys (dict "a" 1) }} {{ values (dict "a" 1) }} {{ pick (dict "a" 1 "b" 2) "a" "z" }} {{ omit (dict "a" 1 "b" 2) "a" }}"#,
        Ok("map[a:1 b:] map[1:2] true [1 3] [a] [1] map[a:1] map[b:2]"),
    ),
    (
        r#"{{ $d := dict "a" 1 }}{{ $e := set $d "b" 2 }}{{ $d }} {{ $_ := unset $d "a" }}{{ $e }} {{ $c := deepCopy $d }}{{ $_ := set $c "z" 1 }}{{ $d }}"#,
        Ok("map[a:1 b:2] map[b:2] map[b:2]"),
    ),
    (r#"{{ set nil "a" 1 }}"#, Err("set: assignment to entry in nil map")),
    (r#"{{ keys nil }} {{ hasKey nil "a" }} {{ deepCopy (list 1 (dict "a" nil)) }}"#, Ok("[] false [1 map[a:<nil>]]")),
    ("{{ deepCopy nil }}", Err("deepCopy: reflect: call of reflect.Value.Type on zero Value")),
    (
        r#"{{ merge (dict "a" 1 "n" (dict "x" 1)) (dict "a" 2 "b" 3 "n" (dict "x" 2 "y" 2)) (dict "c" 4) }} {{ mergeOverwrite (dict "a" 1 "l" (list 1)) (dict "a" 0 "l" (list 2) "z" nil) }} {{ merge (dict "a" "" "b" "s") (dict "a" 1 "b" (dict "c" 1)) }} {{ mergeOverwrite (dict "b" "s") (dict "b" (dict "c" 1)) }}"#,
        Ok("map[a:1 b:3 c:4 n:map[x:1 y:2]] map[a:0 l:[2] z:<nil>] map[a:1 b:s] map[b:s]"),
    ),
    (
        r#"{{ mergeOverwrite (dict "a" (dict "x" 1)) (dict "a" (semver "1.2.3")) }}"#,
        Err("mergeOverwrite: reflect: reflect.Value.Set using unaddressable value"),
    ),
    (
        r#"{{ semver "v1.2-beta.1+b" }} {{ (semver "1.2.3-a+b").Minor }} {{ (semver "1.2.3-a+b").Prerelease }} {{ semverCompare "^1.2" "1.3.0" }} {{ semverCompare "~1.2.3" "1.3.0" }} {{ semverCompare ">=1.0, <2 || >3" "3.1" }} {{ semverCompare "1.2 - 1.4" "1.4.5" }} {{ semverCompare ">1.0" "1.1.0-rc" }} {{ semverCompare "*" "0.1.0" }} {{ semverCompare "!=1.x" "1.2.3" }}"#,
        Ok("1.2.0-beta.1+b 2 a true false true false false true false"),
    ),
    (r#"{{ semver "1.2.3.4" }}"#, Err("semver: Invalid Semantic Version")),
    (
        r#"{{ semver "99999999999999999999" }}"#,
        Err(
            r#"semver: Error parsing version segment: strconv.ParseInt: parsing "99999999999999999999": value out of range"#,
        ),
    ),
    (r#"{{ semverCompare "nope" "1.0.0" }}"#, Err("semverCompare: improper constraint: nope")),
    (r#"{{ fail "no" }}"#, Err("fail: no")),
    (
        r#"{{ regexMatch "^[a-z]+$" "abc" }} {{ regexMatch "[" "x" }} {{ regexFindAll "[2,4,6,8]" "123456789" 2 }} {{ regexFind "\\d+" "a٣12" }} {{ regexReplaceAll "a(x*)b" "-ab-axxb-" "${1}W" }} {{ regexReplaceAll "a(x*)b" "-ab-axxb-" "$1W" }} {{ regexReplaceAllLiteral "a(x*)b" "-ab-axxb-" "${1}" }} {{ regexSplit "z+" "pizza" -1 }} {{ regexReplaceAll "" "ab" "-" }} {{ regexReplaceAll "(?P<k>\\w+)=" "a=b" "$k:$$" }}"#,
        Ok("true false [2 4] 12 -W-xxW- --- -${1}-${1}- [pi a] -a-b- a:$b"),
    ),
    (
        r#"{{ regexFind "[a" "x" }}"#,
        Err("regexFind: regexp: Compile(`[a`): error parsing regexp: missing closing ]: `[a`"),
    ),
    (
        r#"{{ regexFind "a**" "x" }}"#,
        Err("regexFind: regexp: Compile(`a**`): error parsing regexp: invalid nested repetition operator: `**`"),
    ),
    (
        r#"{{ regexFind "(?P<n" "x" }}"#,
        Err("regexFind: regexp: Compile(`(?P<n`): error parsing regexp: invalid named capture: `(?P<n`"),
    ),
    (
        r#"{{ regexSplit "a{1001}" "x" -1 }}"#,
        Err("regexSplit: regexp: Compile(`a{1001}`): error parsing regexp: invalid repeat count: `{1001}`"),
    ),
    (
        r#"{{ urlParse "http://user:p%40s@Host.com:8080/a%20b/c?x=1#f%21" }} {{ urlParse "mailto:x@y" }}"#,
        Ok(
            "map[fragment:f! host:Host.com:8080 hostname:Host.com opaque: path:/a b/c query:x=1 scheme:http userinfo:user:p%40s] map[fragment: host: hostname: opaque:x@y path: query: scheme:mailto userinfo:]",
        ),
    ),
    (
        r#"{{ urlParse "http://[::1" }}"#,
        Err(r#"urlParse: unable to parse url: parse "http://[::1": missing ']' in host"#),
    ),
    (
        r#"{{ urlJoin (dict "scheme" "https" "host" "h:1" "path" "/a b" "query" "q=1" "fragment" "f g" "userinfo" "u:p") }} {{ urlJoin (dict "path" "a:b") }}"#,
        Ok("https://u:p@h:1/a%20b?q=1#f%20g ./a:b"),
    ),
    (
        r#"{{ urlJoin (dict "host" 1) }}"#,
        Err("urlJoin: unable to parse host key, must be of type string, but int found"),
    ),
    (
        r#"{{ date "2006-01-02 15:04:05 MST" 1600000000 }} {{ dateInZone "Mon Jan _2 3:04PM -07:00 MST" 1600000000 "America/New_York" }} {{ date_in_zone "2006" 0 "No/Where" }} {{ htmlDate 0 }} {{ htmlDateInZone 0 "Asia/Tokyo" }}"#,
        Ok("2020-09-13 12:26:40 UTC Sun Sep 13 8:26AM -04:00 EDT 1970 1970-01-01 1970-01-01"),
    ),
    (
        r#"{{ toDate "2006-01-02" "2020-02-29" }} {{ toDate "2006-01-02" "2021-02-29" }} {{ toDate "Jan 2 06 3PM MST" "feb 1 99 3PM CEST" }} {{ toDate "2006-01-02T15:04:05Z07:00" "2020-01-02T03:04:05.5+02:00" }} {{ unixEpoch (toDate "2006" "2020") }}"#,
        Ok(
            "2020-02-29 00:00:00 +0000 UTC 0001-01-01 00:00:00 +0000 UTC 1999-02-01 15:00:00 +0000 CEST 2020-01-02 03:04:05.5 +0200 +0200 1577836800",
        ),
    ),
    (
        r#"{{ dateModify "-1.5h" (toDate "2006" "2020") }} {{ date_modify "bad" (toDate "2006" "2020") }} {{ (toDate "2006-01-02" "2020-03-01").YearDay }} {{ date "002 06 pm" (toDate "2006-01-02" "2020-03-01") }}"#,
        Ok("2019-12-31 22:30:00 +0000 UTC 2020-01-01 00:00:00 +0000 UTC 61 061 20 am"),
    ),
    (
        r#"{{ abbrev 5 "hello world" }} {{ abbrev 2 "hello" }} {{ abbrevboth 5 10 "1234 5678 9123" }} {{ abbrevboth 9 10 "1234 5678 9123" }} {{ wrap 5 "Hello World again" }} {{ wrapWith 5 "-" "HelloWorld again" }}"#,
        Ok("he... hello ...5678... ...78 9123 Hello\nWorld\nagain Hello-World-again"),
    ),
    (
        r#"{{ $v := semver "v1.2.4-beta+b" }}{{ $v.Major }} {{ $v.Minor }} {{ $v.Patch }} {{ $v.Prerelease }} {{ $v.Metadata }} {{ $v.Original }} {{ $v.Compare (semver "1.2.4") }} {{ semver "1.2.3" | $v.GreaterThan }} {{ $v.LessThan $v }} {{ $v.Equal $v }}"#,
        Ok("1 2 4 beta b v1.2.4-beta+b -1 true false true"),
    ),
    (
        r#"{{ $d := toDate "2006-01-02 15:04" "2024-02-29 23:59" }}{{ $d.Year }} {{ $d.Month }} {{ printf "%02d" $d.Month }} {{ $d.Weekday }} {{ $d.YearDay }} {{ $d.Format "Jan 2" }} {{ (($d.Add 60000000000).AddDate 1 0 0).Format "2006-01-02" }} {{ $d.Unix }} {{ toYaml $d }}"#,
        Ok("2024 February 02 Thursday 60 Feb 29 2025-03-01 1709251140 2024-02-29T23:59:00Z"),
    ),
    (
        r#"{{ $a := toDate "2006" "2024" }}{{ $b := $a.AddDate 0 0 -1 }}{{ $s := $a.Sub $b }}{{ $s }} {{ $s.Hours }} {{ $a.After $b }} {{ $b.Compare $a }} {{ eq $a.Month 1 }} {{ range $a.Weekday }}{{ . }}{{ end }} {{ toJson $a.Month }} {{ kindOf $a.Month }} {{ typeOf $a.Weekday }}"#,
        Ok("24h0m0s 24 true -1 true Sunday 1 int time.Weekday"),
    ),
    (r#"{{ (semver "1.2.3").Compare }}"#, Err("wrong number of args for Compare: want 1 got 0")),
    (r#"{{ (semver "1.2.3").Compare "1.2.3" }}"#, Err("can't handle \"1.2.3\" for arg of type *semver.Version")),
    (
        r#"{{ (semver "1.2.3").Compare nil }}"#,
        Err("error calling Compare: runtime error: invalid memory address or nil pointer dereference"),
    ),
    (r#"{{ (toDate "2006" "2024").Add "1h" }}"#, Err("expected integer; found \"1h\"")),
    (r#"{{ (toDate "2006" "2024").Nope }}"#, Err("can't evaluate field Nope in type time.Time")),
    (
        r#"{{ toYaml (list (toDate "2006" "2024")) }}"#,
        Err("a time inside a map or a list has no YAML here: format it first"),
    ),
];

fn render(template: &str) -> Result<String, String> {
    let config = BTreeMap::from([(
        "nested".to_owned(),
        kedge_goyaml::decode("{b: [1, {c: 2.5}], 7: x, true: null}").expect("a map"),
    )]);
    with_data(&[("workload", "w"), ("workspace", "ws")], &config, |data| {
        let rendered = Template::parse(template).and_then(|parsed| parsed.render(data, &Limits::default()));
        rendered.map_err(|error| error.to_string())
    })
}

#[test]
fn every_function_gives_what_go_gives() {
    for (template, expected) in CASES {
        match (render(template), expected) {
            (Ok(output), Ok(expected)) => assert_eq!(output, *expected, "{template}"),
            (Err(error), Err(expected)) => assert!(error.ends_with(expected), "{template}: {error}"),
            (actual, _) => panic!("{template}: {actual:?} instead of {expected:?}"),
        }
    }
}

#[test]
fn each_name_of_sprig_is_a_function_or_refused() {
    let mut ours: Vec<&str> =
        functions().map(|function| function.name).chain(REFUSED.iter().map(|refused| refused.0)).collect();
    ours.sort_unstable();
    assert_eq!(ours, NAMES.split(' ').collect::<Vec<_>>());
}

#[test]
fn every_function_has_a_case() {
    for function in functions() {
        let name = function.name;
        let called = CASES.iter().any(|(template, _)| {
            template.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').any(|word| word == name)
        });
        assert!(called, "{name}");
    }
}

#[test]
fn yaml_maps_are_written_as_json() {
    let json = r#"{"7":"x","b":[1,{"c":2.5}],"true":null}"#;
    assert_eq!(render("{{ toJson .ConfigData.nested }}").as_deref(), Ok(json));
}

#[test]
fn a_date_without_a_time_is_refused() {
    for template in [r#"{{ date "2006" "x" }}"#, "{{ htmlDate nil }}", r#"{{ dateInZone "2006" 1.5 "UTC" }}"#] {
        assert!(render(template).is_err_and(|error| error.contains("differs each time")), "{template}");
    }
}

#[test]
fn little_does_not_become_much() {
    for template in [
        "{{ until 1000000000 }}",
        "{{ untilStep 0 9223372036854775807 1 }}",
        "{{ untilStep -9223372036854775807 9223372036854775807 1 }}",
        r#"{{ repeat 1000000000 "x" }}"#,
        r#"{{ repeat 9223372036854775807 "xx" }}"#,
        r#"{{ indent 1000000000 "x" }}"#,
        r#"{{ $s := repeat 4000 "a" }}{{ replace "" $s $s }}"#,
        r#"{{ $s := repeat 4000 "a" }}{{ regexReplaceAll "a" $s $s }}"#,
        r#"{{ $s := repeat 4000 "a" }}{{ join $s (until 4000) }}"#,
        r#"{{ $s := repeat 4000 "a" }}{{ wrapWith 1 $s $s }}"#,
        "{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ toJson $l }}",
        "{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ toString $l }}",
        "{{ $l := list 1 }}{{ range until 60 }}{{ $l = list $l $l }}{{ end }}{{ deepCopy $l }}",
        r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ toJson $d }}"#,
        r#"{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $e := dict }}{{ $_ := set $e "d" $e }}{{ merge $d $e }}"#,
    ] {
        assert!(render(template).is_err(), "{template}");
    }
}

fn literal() -> impl Strategy<Value = String> {
    let text = proptest::string::string_regex("[ -~é日\n\t😀]{0,12}").expect("a pattern");
    prop_oneof![
        text.prop_map(|text| crate::quote::quote(&text)),
        any::<i64>().prop_map(|number| number.to_string()),
        (-20_i64..20).prop_map(|number| number.to_string()),
        any::<f64>().prop_filter("a constant", |number| number.is_finite()).prop_map(|number| format!("{number:?}")),
        Just("nil".to_owned()),
        Just("true".to_owned()),
        Just(r#"(list 1 nil "a" (list))"#.to_owned()),
        Just(r#"(dict "a" 1 "b" (dict))"#.to_owned()),
        Just(r#"(toDate "2006" "2020")"#.to_owned()),
        Just(r#"(semver "1.2.3")"#.to_owned()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// Whatever the arguments, the answer is a text or an error, never a panic.
    #[test]
    fn hostile_arguments_do_not_panic(at in any::<prop::sample::Index>(), args in prop::collection::vec(literal(), 0..5)) {
        let function = at.get(&functions().collect::<Vec<_>>()).to_owned();
        let _ = render(&format!("{{{{ {} {} }}}}", function.name, args.join(" ")));
    }

    #[test]
    fn hostile_patterns_do_not_panic(pattern in r"[\\(){}\[\]?*+|^$.a-dPQEpxdw0-9,:<>-]{0,20}", text in ".{0,20}") {
        let (pattern, text) = (crate::quote::quote(&pattern), crate::quote::quote(&text));
        let _ = render(&format!("{{{{ regexFindAll {pattern} {text} -1 }}}}"));
    }

    #[test]
    fn hostile_layouts_do_not_panic(layout in "[0-9JanMoPpSTZ_.,: +-]{0,30}", text in "[0-9JanMoPpSTZGU_.,: +-]{0,30}", seconds in any::<i64>()) {
        let (layout, text) = (crate::quote::quote(&layout), crate::quote::quote(&text));
        let _ = render(&format!("{{{{ toDate {layout} {text} }}}}{{{{ date {layout} {seconds} }}}}"));
    }

    #[test]
    fn hostile_addresses_do_not_panic(text in r"[a-z:/?#@%\[\].0-9]{0,30}") {
        let _ = render(&format!("{{{{ urlParse {} | urlJoin }}}}", crate::quote::quote(&text)));
    }
}
