import Foundation

let wrapper = Wrapper()
guard wrapper.set("one", for: "key"), wrapper.set("two", for: "key") else { fatalError("not set") }
print(wrapper.get("key") ?? "none", wrapper.get("other") ?? "none")
