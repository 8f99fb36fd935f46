/// The process.
@main
enum Agent {
    static func main() {}
}
